"""The gallery against its strongest peers: judges, then times each case of a sweep in one schedule.

    python -m benchmarks.gallery [--quick] [--only softmax,transpose] [--budget 1.5]

The sweep is fixed below, before anything is run. Rows go to
benchmarks/results/<card>/gallery.jsonl; the table gives for each case ours (the best of CUDA C++
and Triton) against each peer, with the interval of the ratio, and the geometric mean and worst case
of each operator and dtype.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from assay.clock.statistics import ratio, seconds
from assay.errors import AssayError
from assay.pipeline import Progress, Request, run
from assay.rows import encode
from assay.session import Session
from assay.target import parse
from assay.types import Row, Scalar
from benchmarks.first_operators import RESULTS, card, published

PEERS = ("eager", "eager/cross_entropy", "compiled", "compiled/max_autotune", "library/liger")
OURS = ("cuda", "triton")
BOTH = ("float32", "bfloat16")
SWEEP: dict[str, list[dict[str, Scalar]]] = {
    "square": [{"m": 8192, "n": 8192}],
    "gelu": [{"n": 1 << 16}, {"n": 1 << 22}, {"n": 1 << 26}],
    "gelu_tanh": [{"n": 1 << 22}, {"n": 1 << 26}],
    "vecadd": [{"n": 1 << 16}, {"n": 1 << 22}, {"n": 1 << 26}],
    "sum": [{"n": 1 << 26}, {"n": 1 << 28}],
    "softmax": [
        *({"rows": 32768, "n": 256}, {"rows": 32768, "n": 4096}, {"rows": 8192, "n": 8192}),
        *({"rows": 4096, "n": 32768}, {"rows": 256, "n": 131072}, {"rows": 64, "n": 393216}),
    ],
    "layernorm": [{"rows": 64, "n": 65536}, {"rows": 8192, "n": 4096}, {"rows": 32768, "n": 1024}],
    "rmsnorm": [{"rows": 64, "n": 65536}, {"rows": 8192, "n": 4096}],
    "cross_entropy": [{"rows": 4096, "n": 32000}, {"rows": 2048, "n": 131072}],
    "cross_entropy_both": [{"rows": 4096, "n": 32000}],
    "transpose": [{"m": 8192, "n": 8192}, {"m": 4096, "n": 16384}],
}


def main() -> None:
    """Runs the sweep; exits 1 if a kernel of ours failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the last case of each alone")
    parser.add_argument("--only", default="", help="operators, by comma")
    parser.add_argument("--dtype", default=",".join(BOTH))
    parser.add_argument("--budget", type=float, default=1.5, help="seconds of sampling a case")
    parser.add_argument("--device", default="cuda:0")
    given = parser.parse_args()
    names = given.only.split(",") if given.only else list(SWEEP)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        machine = session.machine()
        place = RESULTS / card(machine) / "gallery.jsonl"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(encode(published(machine)) + b"\n")
        for name in names:
            for case in SWEEP[name][-1:] if given.quick else SWEEP[name]:
                for dtype in given.dtype.split(","):
                    made = list(measured(session, name, {**case, "dtype": dtype}, given))
                    with place.open("ab") as file:
                        file.writelines(encode(published(row)) + b"\n" for row in made)
                    print(*lines(made), sep="\n", flush=True)
                    rows += made
    print(*means(rows), sep="\n")
    raise SystemExit(any(r.outcome == "fail" for r in rows if r.way in OURS))


def measured(
    session: Session, name: str, case: dict[str, Scalar], given: argparse.Namespace
) -> Iterator[Row]:
    """Rows of one case; a mistake of the whole is told, and the sweep goes on."""
    target = parse(f"{Path(__file__).with_name('peers.py')}:{name}")
    wanted = (*OURS, *PEERS)
    request = Request(
        (target,), device=given.device, case=case, variants=wanted, budget=given.budget
    )
    try:
        for noun in run(session, request, Progress()):
            if isinstance(noun, Row):
                yield noun
    except AssayError as error:
        print(f"{name} {case}: {error}", flush=True)


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Ours, then each peer beside it."""
    ours = best(rows)
    for row in rows:
        if row.outcome == "fail" or row.not_timed or row.word == "not run":
            why = row.reason or row.not_timed
            yield f"  {row.op} {row.label} {row.case.label}: {row.word} {why}"
    if ours is None or ours.timing is None:
        return
    rate = f", {ours.bytes / ours.timing.median / 1e9:,.0f} GB/s" if ours.bytes else ""
    yield f"{ours.op} {ours.case.label}: {ours.label} {seconds(ours.timing.median)}{rate}"
    for row in rows:
        if row.variant in PEERS and row.timing:
            low, middle, high = against(ours, row)
            yield f"    {middle:6.3f} x {row.label} ({low:.3f} to {high:.3f})"


def best(rows: Sequence[Row]) -> Row | None:
    """The fastest of ours that is right and timed."""
    timed = [row for row in rows if row.way in OURS and row.timing]
    return min(timed, key=lambda row: row.timing.median if row.timing else math.inf, default=None)


def against(ours: Row, peer: Row) -> tuple[float, float, float]:
    """Interval and middle of the peer's time over ours, paired by round."""
    a, b = ours.timing, peer.timing
    assert a is not None
    assert b is not None
    return ratio(a.samples, a.rounds, b.samples, b.rounds)


def means(rows: Sequence[Row]) -> Iterator[str]:
    """Geometric mean and worst case of each operator, dtype and peer, in a line each."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for op, case in dict.fromkeys((row.op, row.case.label) for row in rows):
        mine = [row for row in rows if (row.op, row.case.label) == (op, case)]
        ours = best(mine)
        for row in mine if ours is not None else []:
            if row.variant in PEERS and row.timing and ours is not None:
                key = op, str(row.case.values.get("dtype", "")), row.variant
                found.setdefault(key, []).append(against(ours, row)[1])
    yield "geometric mean of peer over ours, and the worst case:"
    for (op, dtype, peer), ratios in found.items():
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        yield f"  {op} {dtype} {peer}: {mean:.3f}, {min(ratios):.3f} ({len(ratios)} cases)"


if __name__ == "__main__":
    main()
