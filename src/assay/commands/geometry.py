"""`assay geometry`: blocks, occupancy and its limiter, waves; of numbers or of a target."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ..cases import parse_values
from ..counting import counted
from ..errors import AssayError, NotRun
from ..inside.geometry import MOST, PREDICTED, Geometry, geometry
from ..inside.geometry import lines as text_of
from ..inside.geometry.behaviour import Behaviour, behaviour
from ..inside.geometry.behaviour import lines as text_of_behaviour
from ..inside.geometry.variant import COMPILED, Launches, launches_in, launches_of
from ..inside.geometry.variant import lines as text_of_launches
from ..pipeline import describe
from ..session import Session
from ..target import Target, parse
from ..types import Scalar
from ..ways import DEFAULT_ARCH

DERIVED = (
    *("blocks", "threads", "warps", "block_warps", "idle_lanes", "blocks_per_sm"),
    *("active_warps", "active_scheduler_warps"),
)
OF_A_LAUNCH = ("block", "registers", "static_shared", "dynamic_shared", "barriers")


@dataclass(frozen=True)
class Options:
    """As the command line has them; None or empty: not given."""

    target: str = ""
    variant: str = ""
    case: str = ""
    arch: str = ""
    sms: int | None = None
    carveout: str = ""
    grid: str = ""
    block: str = ""
    registers: int | None = None
    static_shared: int | None = None
    dynamic_shared: int | None = None
    barriers: int | None = None
    counts: bool = True
    as_json: bool = False


def run(given: Options) -> int:
    """Prints it; exit code 0, or 3 if something can't be said here. Raises AssayError."""
    if bool(given.target) == bool(given.grid):
        raise AssayError("geometry of what? give a TARGET, or --grid with --block")
    return _of_numbers(given) if given.grid else _of_target(given)


def _of_numbers(given: Options) -> int:
    for name in ("block", "registers"):
        if getattr(given, name) in (None, ""):
            raise AssayError(f"geometry of --grid {given.grid}: give --{name} too")
    for name in ("variant", "case"):
        if getattr(given, name):
            raise AssayError("-k and --case go with a TARGET, not with --grid")
    found = geometry(
        _size("grid", given.grid),
        _size("block", given.block),
        arch=given.arch or DEFAULT_ARCH,
        registers=given.registers,
        static_shared=given.static_shared or 0,
        dynamic_shared=given.dynamic_shared or 0,
        barriers=given.barriers or 0,
        multiprocessors=given.sms,
        carveout=_carveout(given.carveout),
    )
    if given.as_json:
        print(msgspec.json.encode(facts(found)).decode())
    else:
        print("\n".join(text_of(found)))
    return 0


def _of_target(given: Options) -> int:
    wrong = [name for name in OF_A_LAUNCH if getattr(given, name) not in (None, "")]
    if wrong:
        raise AssayError(f"--{wrong[0].replace('_', '-')} goes with --grid, not with a TARGET")
    target, values = parse(given.target), parse_values(given.case) if given.case else {}
    if not given.variant:
        return _of_all(given, target, values)
    code, why = 0, ""
    done: Behaviour | None = None
    try:
        found = launches_of(target, given.variant, values, given.arch, **_card(given))
    except NotRun as reason:
        print(f"assay: no geometry: {reason}", file=sys.stderr)
        return 3
    if given.counts:
        try:
            said = counted(target, given.variant, values, given.arch)
            done = behaviour(said.counts, said.arch)
        except NotRun as reason:
            code, why = 3, f"assay: accesses not counted: {reason}"
    _print(given, found, done)
    if code:
        print(why, file=sys.stderr)
    return code


def _of_all(given: Options, target: Target, values: dict[str, Scalar]) -> int:
    """Every variant whose launches can be noted, without their accesses: one child each."""
    shown, reasons = 0, list[Exception]()
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        ops = describe(session, target)
        for variant in (v for v in ops[0].variants if v.way in COMPILED):
            try:
                found = launches_in(
                    session, target, variant.name, values, given.arch, **_card(given)
                )
            except (NotRun, AssayError) as reason:
                reasons.append(reason)
                continue
            if shown and not given.as_json:
                print()
            _print(given, found, None)
            shown += 1
    if not shown and reasons and isinstance(reasons[0], AssayError):
        raise reasons[0]  # a case that there is not is the mistake of all
    for said in dict.fromkeys(map(str, reasons)):
        print(f"assay: no geometry: {said}", file=sys.stderr)
    if not shown:
        print(f"assay: no variant of ways {', '.join(COMPILED)} could be shown", file=sys.stderr)
    return 0 if shown else 3


def _card(given: Options) -> dict[str, Any]:
    return {"multiprocessors": given.sms, "carveout": _carveout(given.carveout)}


def _print(given: Options, found: Launches, done: Behaviour | None) -> None:
    if given.as_json:
        said = [*_json(found, done)]
    else:
        said = [*text_of_launches(found), *(text_of_behaviour(done) if done else ())]
    print("\n".join(said))


def _json(found: Launches, done: Behaviour | None) -> Iterator[str]:
    of: dict[str, Any] = {"op": found.op, "variant": found.label, "case": found.case}
    of |= {"flops": found.flops, "bytes": found.bytes}
    for one, times in zip(found.geometries, found.times):
        made = {**of, "compiled_for": found.compiled_for, "times": times, **facts(one)}
        yield msgspec.json.encode(made).decode()
    if done is not None:
        yield msgspec.json.encode({**of, "counted": done}).decode()


def facts(found: Geometry) -> dict[str, Any]:
    """A geometry as data: its fields, and what follows from them."""
    said = dataclasses.asdict(found)
    for name in DERIVED:
        said[name] = getattr(found, name)
    if found.occupancy is not None:
        held = found.occupancy
        said["occupancy"] |= {
            "fraction": held.fraction,
            "limiters": held.limiters,
            "scheduler_warps": held.scheduler_warps,
            "most_scheduler_warps": held.most_scheduler_warps,
        }
    if found.waves is not None:
        waves = found.waves
        for name in ("number", "full", "partial", "tail_most", "idle", "padding"):
            said["waves"][name] = getattr(waves, name)
    return said


def _size(what: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError:
        raise AssayError(f"--{what} {text}: give one to three numbers, as 16,32,3") from None


def _carveout(text: str) -> int | str:
    if text in ("", PREDICTED, MOST):
        return text or PREDICTED
    if not text.isdigit():
        raise AssayError(f"--carveout {text}: give bytes of shared memory, {MOST} or {PREDICTED}")
    return int(text)
