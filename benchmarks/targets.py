"""Targets 1 to 6 as arithmetic over rows: what must be, what was seen, met or missed.

A ratio is a peer's time over ours, paired by round within one schedule, or our rate over that of
the copy timed in the same schedule; of several processes the geometric mean, with an interval that
holds what differs between them (`assay.comparison.ratios`). The kernel of each side is the one of
which the median process is fastest. The 95 % interval has to lie on the right side; of several
cases it is that of the geometric mean, or of the worst case, which is told in either case. Beside
what must be stands the stretch, where the list of targets has one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from assay.clock.statistics import ratio
from assay.comparison import ratios
from assay.comparison.ratios import Estimate, joined
from assay.types import Row, Scalar, Timing
from benchmarks.sweep import CACHED, FEW, PEERS, SWEEP, TORCH

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
    must: float | None
    """None: the list of targets has a stretch alone."""
    against: tuple[str, ...] = ()
    """Variants, of which the fastest is the peer; empty: the copy of the same schedule."""
    where: Where = lambda values: True
    worst: bool = False
    """The worst case decides, else the geometric mean."""
    ours: tuple[str, ...] = OURS
    """Ways of ours, of which the fastest counts."""
    stretch: float | None = None


@dataclass(frozen=True)
class Answer:
    """What rows say of a target."""

    target: Target
    cases: tuple[tuple[str, Estimate], ...] = ()
    """Operator and case, and its ratio."""
    left: int = 0
    """Cases of which nothing of ours was timed."""

    @property
    def whole(self) -> Interval | None:
        """What is held against the target."""
        found = [one for _, one in self.cases]
        return together(found, self.target.worst).shown if found else None

    @property
    def worst(self) -> tuple[str, Interval]:
        """The least of the cases."""
        name, one = min(self.cases, key=lambda case: case[1].middle)
        return name, one.shown

    @property
    def words(self) -> tuple[str, str]:
        """Of what must be, and of the stretch; empty where there is none."""
        found = (self._word(self.target.must), self._word(self.target.stretch))
        return found[0], found[1].replace("missed", "not met")

    def _word(self, least: float | None) -> str:
        if least is None:
            return ""
        if self.whole is None:
            return "not measured"
        return word(least, self.whole) + (f" so far, {self.left} cases to come" * bool(self.left))


def of(dtype: str, **sizes: int) -> Where:
    """The cases of a dtype and of these sizes."""
    return lambda v: v.get("dtype") == dtype and all(v.get(n) == s for n, s in sizes.items())


def large(dtype: str) -> Where:
    """The cases of a dtype that a copy is set beside: reading and writing them once is LARGE."""
    size = {"float32": 4, "bfloat16": 2}[dtype]

    def where(values: dict[str, Scalar]) -> bool:
        counts = [v for v in values.values() if isinstance(v, int)]
        return values.get("dtype") == dtype and 2 * size * math.prod(counts) >= LARGE

    return where


def few(values: dict[str, Scalar]) -> bool:
    """The few long rows."""
    return values.get("rows") == FEW["rows"]


def usual(values: dict[str, Scalar]) -> bool:
    """Neither those, nor the rows that a cache holds."""
    return not few(values) and any(values.get(name) != size for name, size in CACHED.items())


def long(values: dict[str, Scalar]) -> bool:
    """Sums of more than a cache holds."""
    return int(values["n"]) >= 1 << 26


def shown(interval: Interval) -> str:
    """`1.295 (1.290 to 1.301)`."""
    return "{1:.3f} ({0:.3f} to {2:.3f})".format(*interval)


COMPILED = ("compiled", "compiled/max_autotune")
EAGER = ("eager", "eager/cross_entropy")
READ = "read"
"""In place of a variant: the ceiling of reading, as `assay roofs` measured it on this machine."""
LIGER, QUACK, CUB = ("library/liger",), ("library/quack",), ("extension/cub",)
SQUARE, WIDE, LONG = dict(rows=8192, n=8192), dict(rows=32768, n=4096), dict(rows=4096, n=32768)
SHAPES = (SQUARE, WIDE, LONG)
STREAMS = ("square", "vecadd", "gelu_tanh", "gelu")
TARGETS = (
    *(
        Target(3, f"softmax {dtype} {shape['rows']} x {shape['n']} over best torch", ("softmax",),
               must, TORCH, of(dtype, **shape), stretch=stretch)
        for dtype, musts, stretches in (
            ("bfloat16", (1.8, 1.8, 1.5), (2.2, 2.25, 1.75)),
            ("float32", (1.08, 1.15, 1.30), (1.15, 1.22, 1.40)),
        )
        for must, stretch, shape in zip(musts, stretches, SHAPES)
    ),
    Target(3, "softmax over compile, geometric mean", ("softmax",), 1.3, COMPILED),
    Target(3, "softmax over Liger, geometric mean", ("softmax",), 1.0, LIGER),
    Target(3, "softmax over QuACK, geometric mean", ("softmax",), None, QUACK, stretch=1.0),
    Target(3, "softmax, worst case over any peer", ("softmax",), 0.97, PEERS, worst=True),
    *(
        Target(6, f"transpose {dtype} of a copy", ("transpose",), 0.95, (),
               large(dtype), stretch=0.975)
        for dtype in ("float32", "bfloat16")
    ),
    *(
        Target(1, f"{name} {dtype} of a copy, from 256 MiB", (name,), 0.99, (), large(dtype),
               stretch=0.995)
        for name in STREAMS
        for dtype in ("float32", "bfloat16")
    ),
    *(
        Target(1, f"numba {name} float32 of a copy, from 256 MiB", (name,), 0.98, (),
               large("float32"), ours=("numba",), stretch=0.98)
        for name in ("square", "vecadd")
    ),
    Target(1, "elementwise over best torch, geometric mean", STREAMS, 1.0, TORCH),
    Target(1, "bfloat16 GELU over best torch, 2^27", ("gelu_tanh",), 1.10, TORCH,
           of("bfloat16", n=1 << 27), stretch=1.14),
    Target(1, "float32 GELU over the formula in eager, 2^26", ("gelu_tanh",), 10.0,
           ("eager/formula",), of("float32", n=1 << 26)),
    Target(2, "sum of reading, 2^28", ("sum",), 0.96, (READ,), lambda v: v["n"] == 1 << 28),
    Target(2, "sum over torch.sum, worst case", ("sum",), 1.0, TORCH, long, worst=True),
    Target(2, "sum over CUB, geometric mean", ("sum",), None, CUB, long, stretch=1.01),
    Target(4, "layernorm of few rows over eager", ("layernorm",), 20.0, ("eager",),
           few, stretch=32.0),
    Target(4, "layernorm of few rows over compile", ("layernorm",), 1.5, COMPILED,
           few, stretch=1.9),
    Target(4, "layernorm, usual rows, over the best peer", ("layernorm",), 1.0, PEERS, usual,
           stretch=1.02),
    Target(4, "rmsnorm over the best peer", ("rmsnorm",), 1.0, PEERS, usual, stretch=1.02),
    Target(4, "gradients of norms over compile", ("layernorm_grad", "rmsnorm_grad"), 1.0, COMPILED,
           usual),
    Target(5, "cross-entropy over eager", ("cross_entropy",), 2.0, EAGER, usual, stretch=2.6),
    Target(5, "cross-entropy over compile", ("cross_entropy",), 1.3, COMPILED, usual, stretch=1.6),
    Target(5, "cross-entropy with gradient over compile", ("cross_entropy_both",), 1.0, COMPILED,
           usual, stretch=2.0),
)  # fmt: skip
UNMEASURED = (
    (2, "sum of (128, 4096, 4095) over its middle, over torch", "1.15",
     "no operator here sums a middle dimension, and x is 8.6 GB"),
    (4, "rmsnorm over the channels of an image, over eager and compile", "2.6 and 1.45",
     "the operator here takes the last dimension"),
)  # fmt: skip
"""What the list of targets asks and no case can answer: number, what, how much, and why."""


SWEPT = {(part.op, *sorted(case.items())) for part in SWEEP for case in part.cases}
"""What the targets are about: no case is picked afterwards."""


def timed(rows: Sequence[Row]) -> dict[str, list[tuple[Row, Timing]]]:
    """The rows of one case that are timed, by kernel: one of each process, the fastest first."""
    found: dict[str, list[tuple[Row, Timing]]] = {}
    for row in rows:
        if row.timing:
            found.setdefault(row.label, []).append((row, row.timing))
    return {name: sorted(each, key=lambda one: one[1].median) for name, each in found.items()}


def middle(rows: Sequence[Row]) -> list[Row]:
    """Of each case and kernel that is timed, the row of the middle process; of two the slower."""
    cases: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        cases.setdefault((row.op, row.case.label), []).append(row)
    found = (each for mine in cases.values() for each in timed(mine).values())
    return [each[len(each) // 2][0] for each in found]


def best(rows: Sequence[Row], variants: Sequence[str] = (), ways: Sequence[str] = ()) -> Row | None:
    """The fastest kernel of these variants or ways that is right and timed, of one case: its row of
    the middle process."""
    wanted = middle([r for r in rows if r.variant in variants or r.way in ways])
    return min(wanted, key=lambda r: r.timing.median if r.timing else math.inf, default=None)


def against(rows: Sequence[Row], ours: Row, peer: Row) -> Estimate:
    """The peer's time over ours, paired by round, of all processes of one case that timed both.

    Raises ValueError if none did.
    """
    kernels = timed(rows)
    found = [
        ratio(a.samples, a.rounds, b.samples, b.rounds)
        for _, a in kernels[ours.label]
        for _, b in kernels[peer.label]
        if a.schedule == b.schedule
    ]
    if not found:
        raise ValueError(f"{ours.label} and {peer.label} were timed in no common schedule")
    return joined(found)


def of_copy(rows: Sequence[Row], ours: Row) -> Estimate | None:
    """Rate over that of the copy beside it; None of a small case, or where no copy was timed."""
    size = ours.bytes or 0
    found = [
        (size / t.high / t.copy_rate, size / t.median / t.copy_rate, size / t.low / t.copy_rate)
        for _, t in timed(rows)[ours.label]
        if t.copy_rate
    ]
    return joined(found) if found and size >= LARGE else None


def of_ceiling(rows: Sequence[Row], ours: Row) -> Estimate | None:
    """Share of the ceiling of reading; None where that is not the one that binds, or not known."""
    found = []
    for _, timing in timed(rows)[ours.label]:
        if timing.share is not None and timing.share.of == READ:
            whole = timing.share.value * timing.median
            found.append((whole / timing.high, timing.share.value, whole / timing.low))
    return joined(found) if found else None


def seen(target: Target, rows: Sequence[Row]) -> Iterator[tuple[str, Estimate]]:
    """Of each case that the target speaks of, where both sides were timed: its name and ratio."""
    for op, label in dict.fromkeys((r.op, r.case.label) for r in rows if r.op in target.ops):
        mine = [r for r in rows if (r.op, r.case.label) == (op, label)]
        ours = best(mine, ways=target.ours)
        if ours is None or (op, *sorted(ours.case.values.items())) not in SWEPT:
            continue
        if not target.where(ours.case.values):
            continue
        if not target.against:
            found = of_copy(mine, ours)
        elif target.against == (READ,):
            found = of_ceiling(mine, ours)
        else:
            peer = best(mine, target.against)
            found = against(mine, ours, peer) if peer is not None else None
        if found is not None:
            yield f"{op} {label}", found


def together(found: Sequence[Estimate], worst: bool) -> Estimate:
    """The worst case, or the geometric mean. Where each case was timed in one process, nothing says
    how much cases share: the ends are then the means of the ends."""
    if worst:
        return min(found, key=lambda one: one.middle)
    whole = ratios.mean(found)
    if all(len(one.medians[0]) > 1 for one in found):
        return whole
    below, above = (
        sum(getattr(one, end) for one in found) / len(found) for end in ("below", "above")
    )
    return replace(whole, below=below, above=above)


def word(must: float, interval: Interval) -> str:
    """met, missed, or `cannot tell` where the interval lies on both sides."""
    if interval[0] >= must:
        return "met"
    return "missed" if interval[2] < must else "cannot tell"


def answers(rows: Sequence[Row]) -> Iterator[Answer]:
    """What they say of each target."""
    for target in TARGETS:
        yield Answer(target, tuple(seen(target, rows)), untimed(target, rows))


def untimed(target: Target, rows: Sequence[Row]) -> int:
    """Cases of the sweep that the target speaks of, of which nothing of ours was timed."""
    mine = {
        (r.op, *sorted(r.case.values.items())) for r in rows if r.timing and r.way in target.ours
    }
    asked = ((part.op, case) for part in SWEEP if part.op in target.ops for case in part.cases)
    return sum(target.where(case) and (op, *sorted(case.items())) not in mine for op, case in asked)


def table(rows: Sequence[Row], ops: Sequence[str] = ()) -> Iterator[str]:
    """Lines of text: those targets alone that speak of `ops`, if it is given."""
    for answer in answers(rows):
        target = answer.target
        if not ops or set(ops) & set(target.ops):
            yield f"  target {target.number}: {target.what}{line(answer)}"
    if not ops:
        for number, what, stretch, why in UNMEASURED:
            yield f"  target {number}: {what}: -, stretch {stretch}: not measured: {why}"


def line(answer: Answer) -> str:
    """What was seen of a target, in all and in its worst case, and the words for it."""
    target, count = answer.target, len(answer.cases)
    parts = ["-" if answer.whole is None else shown(answer.whole)]
    if count > 1:
        label, interval = answer.worst
        parts.append(f"worst {label if target.worst else f'{label} {shown(interval)}'}")
    asked = (("must", target.must), ("stretch", target.stretch))
    parts += [
        f"{name} {least:g}: {said}"
        for (name, least), said in zip(asked, answer.words)
        if least is not None
    ]
    return f"{f', {count} cases' if count > 1 else ''}: {', '.join(parts)}"
