"""Targets 1 to 6 and 15 as arithmetic over rows: what must be, what was seen, met or missed.

A ratio is a peer's time over ours, paired by round within one schedule, or our rate over that of
the copy timed in the same schedule. Its 95 % interval has to lie on the right side; of several
cases it is the geometric mean of the ends, or the ends of the worst case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from assay.clock.statistics import ratio
from assay.types import Row, Scalar
from benchmarks.sweep import FEW, PEERS, SWEEP, TORCH

OURS = ("cuda", "triton")
LARGE = 1 << 28
"""Bytes that a case moves at least where it is set against a copy."""
Interval = tuple[float, float, float]
Where = Callable[[dict[str, Scalar]], bool]


@dataclass(frozen=True)
class Target:
    """One number that has to be reached."""

    number: int
    what: str
    ops: tuple[str, ...]
    must: float
    against: tuple[str, ...] = ()
    """Variants, of which the fastest is the peer; empty: the copy of the same schedule."""
    where: Where = lambda values: True
    worst: bool = False
    """The worst case decides, else the geometric mean."""
    ours: tuple[str, ...] = OURS
    """Ways of ours, of which the fastest counts."""


def of(dtype: str, **sizes: int) -> Where:
    """The cases of a dtype and of these sizes."""
    return lambda v: v.get("dtype") == dtype and all(v.get(n) == s for n, s in sizes.items())


def usual(values: dict[str, Scalar]) -> bool:
    """Not the few long rows."""
    return values.get("rows") != FEW["rows"]


COMPILED = ("compiled", "compiled/max_autotune")
EAGER = ("eager", "eager/cross_entropy")
READ = "read"
"""In place of a variant: the ceiling of reading, as `assay roofs` measured it on this machine."""
LIGER = ("library/liger",)
SQUARE, WIDE, LONG = dict(rows=8192, n=8192), dict(rows=32768, n=4096), dict(rows=4096, n=32768)
TARGETS = (
    *(
        Target(3, f"softmax {dtype} {sizes} over best torch", ("softmax",), must, TORCH, where)
        for dtype, musts in (("bfloat16", (1.8, 1.8, 1.5)), ("float32", (1.08, 1.15, 1.30)))
        for must, shape in zip(musts, (SQUARE, WIDE, LONG))
        for sizes, where in [(f"{shape['rows']} x {shape['n']}", of(dtype, **shape))]
    ),
    Target(3, "softmax over compile, geometric mean", ("softmax",), 1.3, ("compiled",)),
    Target(3, "softmax over Liger, geometric mean", ("softmax",), 1.0, LIGER),
    Target(3, "softmax, worst case over any peer", ("softmax",), 0.97, PEERS, worst=True),
    Target(6, "transpose float32 of a copy", ("transpose",), 0.95, where=of("float32")),
    Target(6, "transpose bfloat16 of a copy", ("transpose",), 0.95, where=of("bfloat16")),
    *(
        Target(1, f"{name} {dtype} of a copy, from 256 MiB", (name,), 0.99, (), of(dtype))
        for name in ("square", "vecadd", "gelu_tanh", "gelu")
        for dtype in ("float32", "bfloat16")
    ),
    *(
        Target(1, f"numba {name} float32 of a copy, from 256 MiB", (name,), 0.98, (), of("float32"),
               ours=("numba",))
        for name in ("square", "vecadd")
    ),
    Target(1, "elementwise over best torch, geometric mean", ("square", "vecadd", "gelu_tanh",
           "gelu"), 1.0, TORCH),
    Target(1, "bfloat16 GELU over best torch, 2^27", ("gelu_tanh",), 1.10, TORCH,
           of("bfloat16", n=1 << 27)),
    Target(1, "float32 GELU over the formula in eager, 2^26", ("gelu_tanh",), 10.0,
           ("eager/formula",), of("float32", n=1 << 26)),
    Target(2, "sum of reading, 2^28", ("sum",), 0.96, (READ,), lambda v: v["n"] == 1 << 28),
    Target(2, "sum over torch.sum, worst case", ("sum",), 1.0, TORCH, worst=True),
    Target(4, "layernorm of few rows over eager", ("layernorm",), 20.0, ("eager",),
           lambda v: not usual(v)),
    Target(4, "layernorm of few rows over compile", ("layernorm",), 1.5, COMPILED,
           lambda v: not usual(v)),
    Target(4, "layernorm, usual rows, over the best peer", ("layernorm",), 1.0, PEERS, usual),
    Target(4, "rmsnorm over the best peer", ("rmsnorm",), 1.0, PEERS),
    Target(4, "gradients of norms over compile", ("layernorm_grad", "rmsnorm_grad"), 1.0, COMPILED),
    Target(5, "cross-entropy over eager", ("cross_entropy",), 2.0, EAGER),
    Target(5, "cross-entropy over compile", ("cross_entropy",), 1.3, COMPILED),
    Target(5, "cross-entropy with gradient over compile", ("cross_entropy_both",), 1.0, COMPILED),
)  # fmt: skip


SWEPT = {(part.op, *sorted(case.items())) for part in SWEEP for case in part.cases}
"""What the targets are about: no case is picked afterwards."""


def best(rows: Sequence[Row], variants: Sequence[str] = (), ways: Sequence[str] = ()) -> Row | None:
    """The fastest row of these variants or ways that is right and timed."""
    timed = [r for r in rows if r.timing and (r.variant in variants or r.way in ways)]
    return min(timed, key=lambda row: row.timing.median if row.timing else math.inf, default=None)


def against(ours: Row, peer: Row) -> Interval:
    """Interval and middle of the peer's time over ours, paired by round."""
    a, b = ours.timing, peer.timing
    assert a is not None
    assert b is not None
    return ratio(a.samples, a.rounds, b.samples, b.rounds)


def of_copy(row: Row) -> Interval | None:
    """Rate over that of the copy beside it; None of a small case, or where no copy was timed."""
    timing = row.timing
    if timing is None or not timing.copy_rate or not row.bytes or row.bytes < LARGE:
        return None
    rates = (row.bytes / t / timing.copy_rate for t in (timing.high, timing.median, timing.low))
    low, middle, high = rates
    return low, middle, high


def of_ceiling(row: Row) -> Interval | None:
    """Share of the ceiling of reading; None where that is not the one that binds, or not known."""
    timing = row.timing
    if timing is None or timing.share is None or timing.share.of != READ:
        return None
    whole = timing.share.value * timing.median
    return whole / timing.high, timing.share.value, whole / timing.low


def seen(target: Target, rows: Sequence[Row]) -> list[Interval]:
    """One interval for each case that the target speaks of, where both sides were timed."""
    found = []
    for op, label in dict.fromkeys((r.op, r.case.label) for r in rows if r.op in target.ops):
        mine = [r for r in rows if (r.op, r.case.label) == (op, label)]
        ours = best(mine, ways=target.ours)
        if ours is None or (op, *sorted(ours.case.values.items())) not in SWEPT:
            continue
        if not target.where(ours.case.values):
            continue
        if not target.against:
            interval = of_copy(ours)
        elif target.against == (READ,):
            interval = of_ceiling(ours)
        else:
            peer = best(mine, target.against)
            interval = against(ours, peer) if peer is not None else None
        if interval is not None:
            found.append(interval)
    return found


def together(found: Sequence[Interval], worst: bool) -> Interval:
    """The worst case, or the geometric mean of each end and of the middle."""
    if worst:
        return min(found, key=lambda one: one[1])
    low, middle, high = (math.exp(sum(map(math.log, each)) / len(found)) for each in zip(*found))
    return low, middle, high


def word(must: float, interval: Interval) -> str:
    """met, missed, or `cannot tell` where the interval lies on both sides."""
    if interval[0] >= must:
        return "met"
    return "missed" if interval[2] < must else "cannot tell"


def answers(rows: Sequence[Row]) -> Iterator[tuple[Target, int, Interval | None, str]]:
    """Each target: of how many cases, what was seen, and the word; None where nothing was timed."""
    for target in TARGETS:
        found = seen(target, rows)
        if found:
            whole, left = together(found, target.worst), untimed(target, rows)
            said = word(target.must, whole) + (f" so far, {left} cases to come" if left else "")
            yield target, len(found), whole, said
        else:
            yield target, 0, None, "not measured"


def untimed(target: Target, rows: Sequence[Row]) -> int:
    """Cases of the sweep that the target speaks of, of which nothing of ours was timed."""
    mine = {
        (r.op, *sorted(r.case.values.items())) for r in rows if r.timing and r.way in target.ours
    }
    asked = ((part.op, case) for part in SWEEP if part.op in target.ops for case in part.cases)
    return sum(target.where(case) and (op, *sorted(case.items())) not in mine for op, case in asked)


def table(rows: Sequence[Row], ops: Sequence[str] = ()) -> Iterator[str]:
    """Lines of text: those targets alone that speak of `ops`, if it is given."""
    for target, count, interval, said in answers(rows):
        if ops and not set(ops) & set(target.ops):
            continue
        shown = "-" if interval is None else "{1:.3f} ({0:.3f} to {2:.3f})".format(*interval)
        many = f", {count} cases" if count > 1 else ""
        asked = f"must {target.must:g}"
        yield f"  target {target.number}: {target.what}{many}: {shown}, {asked}: {said}"
