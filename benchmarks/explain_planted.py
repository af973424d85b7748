"""Explanations against clocks: planted slow kernels and their repaired twins, timed on a GPU.

    python benchmarks/explain_planted.py [--seed 1] [--to FILE]

Each file of tests/slow is copied under random names. A slow kernel and its twin are timed in one
schedule on the largest case; explain sees the slow one's row and counts. A cause counts as named if
it is the first finding, the twin is faster, and the predicted gain within FACTOR of the true one.
Printed: a line for each kernel, the confusion table, and as JSON lines what was predicted and true.
Exit code 0 if all causes count and no sound kernel is advised, else 1; 3 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from slow_kernels import Planted, planted, table

from assay.explain import Explanation, explain
from assay.explain.cards import of_machine
from assay.explain.costs import HOST, LAUNCHES
from assay.explain.gathering import chosen, facts_of
from assay.explain.recorded import timed
from assay.pipeline import Progress, Request, run
from assay.session import Session
from assay.target import parse
from assay.types import Roofs, Row

FACTOR = 1.5
LIBRARY = (("softmax", "cuda/online"), ("softmax", "triton"), ("square", "cuda/vectorised"))


def rows_of(session: Session, target: str, variants: list[str]) -> tuple[list[Row], Roofs | None]:
    """The rows of the largest case, timed in one schedule, and ceilings where they are known."""
    aim = parse(target)
    case = chosen(session, aim, variants[0], {}).case.case.values
    request = Request((aim,), device="cuda", case=dict(case), variants=tuple(variants))
    nouns = list(run(session, request, Progress()))
    roofs = next((n for n in nouns if isinstance(n, Roofs) and n.device == "cuda:0"), None)
    return [n for n in nouns if isinstance(n, Row)], roofs


def explained(
    session: Session, target: str, variant: str, rows: list[Row], roofs: Roofs | None
) -> Explanation:
    """Of a timed row and counts made on the CPU."""
    aim = parse(target)
    wanted = chosen(session, aim, variant, {})
    gpu = session.machine().gpus[0]
    facts = facts_of(session, aim, wanted, of_machine(gpu, roofs))
    row = next(r for r in rows if r.variant == variant)
    if row.timing is None:
        raise SystemExit(f"{target} {variant} has no time: {row.word} {row.reason} {row.not_timed}")
    return explain(replace(facts, **timed(row)))


def true_gain(slow: Row, twin: Row, cause: str) -> float:
    """By what a user waits where the host is the cause, else by the time of the GPU."""
    assert slow.timing is not None
    assert twin.timing is not None
    if cause in (HOST, LAUNCHES) and slow.timing.wall_seconds and twin.timing.wall_seconds:
        return slow.timing.wall_seconds / twin.timing.wall_seconds
    return slow.timing.median / twin.timing.median


def judged(session: Session, ones: list[Planted]) -> list[dict[str, object]]:
    """What is said of one op's variants, beside what is true."""
    target, names = f"{ones[0].path}:{ones[0].op}", [one.variant for one in ones]
    rows, roofs = rows_of(session, target, names)
    by = {row.variant: row for row in rows}
    made = []
    for one in ones:
        found = explained(session, target, one.variant, rows, roofs)
        first = found.findings[0] if found.findings else None
        timing = by[one.variant].timing
        said: dict[str, object] = {
            "kernel": one.known,
            "cause": one.cause,
            "found": first.cause if first else "" if found.bound else "not explained",
            "seconds": timing.median if timing else None,
            "predicted": first.gain if first else None,
        }
        if one.cause:
            twin = next(x for x in ones if not x.cause)
            true = true_gain(by[one.variant], by[twin.variant], one.cause)
            ratio = max(true / first.gain, first.gain / true) if first else None
            said |= {"true": true, "off": ratio}
            said["counts"] = bool(
                first and first.cause == one.cause and true > 1 and ratio and ratio <= FACTOR
            )
        else:
            said["counts"] = said["found"] == ""
        made.append(said)
    return made


def main() -> int:
    """Prints what was found; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--to", type=Path, default=None, help="JSON lines")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, Session(Path(place) / "logs") as session:
        if not session.machine().gpus:
            print("not run: there is no GPU", file=sys.stderr)
            return 3
        print(session.machine().gpus[0].name)
        every: dict[tuple[Path, str], list[Planted]] = {}
        for one in planted(Path(place), given.seed):
            every.setdefault((one.path, one.op), []).append(one)
        said = []
        for ones in every.values():
            for line in judged(session, ones):
                said.append(line)
                print(json.dumps(line), flush=True)
        for op, variant in LIBRARY:
            rows, roofs = rows_of(session, op, [variant])
            found = explained(session, op, variant, rows, roofs)
            name = found.findings[0].cause if found.findings else ""
            word = name or ("" if found.bound else "not explained")
            said.append(
                {"kernel": f"{op} {variant}", "cause": "", "found": word, "counts": word == ""}
            )
            print(json.dumps(said[-1]), flush=True)
    print("\n".join(table([(str(s["cause"]), str(s["found"])) for s in said])))
    good = sum(bool(s["counts"]) for s in said if s["cause"])
    print(f"{good} of {sum(bool(s['cause']) for s in said)} causes count (within {FACTOR})")
    if given.to is not None:
        given.to.write_text("".join(json.dumps(one) + "\n" for one in said))
    return 0 if all(s["counts"] for s in said) else 1


if __name__ == "__main__":
    sys.exit(main())
