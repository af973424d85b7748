"""`assay launches`: what a call launches, variants side by side, over cases."""

from __future__ import annotations

import fnmatch
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ..cases import parse_values
from ..describe import OpFacts, label
from ..errors import AssayError, NotRun
from ..explain.gathering import only_op
from ..inside.profiling.launched import Launched, choices, launched, text
from ..inside.profiling.timeline import Schedule, recorded
from ..inside.reading.trace import read_trace
from ..pipeline import describe
from ..request import chosen_device
from ..session import Session
from ..target import Target, parse
from ..types import Scalar

USUAL = ("eager", "compiled")
PLAN = Schedule(wait=1, warmup=2, active=4)


def run(
    target: str, only: Sequence[str], case: str, device: str, *, sweep: bool, as_json: bool
) -> int:
    """Prints it; 0, or 3 if nothing could be recorded here. Raises AssayError."""
    values, aim = parse_values(case) if case else {}, parse(target)
    found: list[Launched] = []
    with tempfile.TemporaryDirectory() as name, Session(Path(name) / "logs") as session:
        where = chosen_device(device, session.machine())
        op = only_op(describe(session, aim, values), aim)
        for number, (values, takes) in enumerate(_cases(op, only, sweep=sweep)):
            made = [
                one
                for place, variant in enumerate(takes)
                if (
                    one := _recorded(
                        session, aim, variant, values, where, Path(name) / f"{number}-{place}"
                    )
                )
            ]
            found += made
            if as_json:
                for one in made:
                    print(msgspec.json.encode(one).decode())
            elif made:
                print("\n".join(_case(op.name, made)))
    if not as_json and found:
        print("\n".join(choices(found)))
    return 0 if found else 3


def _cases(
    op: OpFacts, only: Sequence[str], *, sweep: bool
) -> list[tuple[dict[str, Scalar], list[str]]]:
    """Cases, the largest or all of them, each with the variants that take it."""
    wanted = only or USUAL
    names = [
        v.name
        for v in op.variants
        if any(fnmatch.fnmatch(n, p) for n in (v.name, v.way) for p in wanted)
    ]
    if not names:
        there = ", ".join(v.name for v in op.variants)
        raise AssayError(f"{op.name}: -k {', '.join(wanted)} names no variant; there are {there}")
    first = {
        v.name: label(v.name, v.configurations[0] if v.configurations else {}) for v in op.variants
    }
    cases = [c for c in op.cases if not c.unsupported and not c.case.zoo]
    if not sweep:
        cases = [max(cases, key=lambda c: c.case.size)] if cases else []
    return [(dict(c.case.values), [n for n in names if first[n] not in c.skip]) for c in cases]


def _recorded(
    session: Session,
    target: Target,
    variant: str,
    values: dict[str, Scalar],
    device: str,
    folder: Path,
) -> Launched | None:
    """What was recorded; None where it can't be, and the reason is told."""
    folder.mkdir()
    try:
        made = recorded(session, target, variant, values, device, folder, PLAN)
    except NotRun as reason:
        print(f"assay: {variant}: not run: {reason}", file=sys.stderr)
        return None
    return launched(read_trace(made.trace), made.label, made.case, made.judge)


def _case(op: str, made: list[Launched]) -> list[str]:
    eager = next((one for one in made if one.label == "eager"), None)
    lines = [f"{op}  {made[0].case}  on {made[0].device}"]
    for one in made:
        lines += text(one, eager)
    return [*lines, ""]
