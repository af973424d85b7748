"""The ratio of two medians, B / A, with what its interval must contain; all in logarithms.

Within a process: moving-block bootstrap (clock/statistics.py). Sides of one schedule are paired by
round; others are independent, and their intervals are joined by the method of variance recovery
(Zou and Donner 2008, Statistics in Medicine 27). Across processes: Student's t of process medians,
by differences where both sides share each process, else Welch's. The wider one counts.

Intervals are those of 95 %. Faster and slower are claimed at 99.9 %, so that noise alone calls
one comparison in a thousand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ..clock.statistics import DRAWS, interval, ratio, tick
from .model import CANNOT_TELL, FASTER, SAME, SLOWER

SHOWN, CLAIMED, POWER = 0.95, 0.999, 0.99
LEAST_SAMPLES = 6
"""Of fewer, even the range of the samples misses the median more often than once in 20."""


@dataclass(frozen=True)
class Series:
    """Samples of one process, seconds a call in time order."""

    samples: tuple[float, ...]
    rounds: tuple[int, ...]
    schedule: str


@dataclass(frozen=True)
class Estimate:
    """ln(B / A)."""

    middle: float
    below: float
    above: float
    """From the middle to the ends of the 95 % interval."""
    claim_below: float
    claim_above: float
    """The same of the 99.9 % interval."""
    error: float
    """Standard error."""
    between: float
    """Added at both ends: what differs between processes, where one process can't show it."""
    medians: tuple[tuple[float, ...], tuple[float, ...]]
    """ln of the median of each process of A and of B."""
    paired: bool

    @property
    def shown(self) -> tuple[float, float, float]:
        """(low, middle, high) of the ratio, 95 %."""
        return self._ends(self.below, self.above)

    @property
    def claim(self) -> tuple[float, float, float]:
        """(low, middle, high) of the ratio, 99.9 %."""
        return self._ends(self.claim_below, self.claim_above)

    def _ends(self, below: float, above: float) -> tuple[float, float, float]:
        wider = self.between
        return (
            _exp(self.middle - below - wider),
            _exp(self.middle),
            _exp(self.middle + above + wider),
        )

    def seen(self, margin: float) -> float:
        """Smallest slowdown that is called 99 times in 100, as a share: 0.03 is 3 %."""
        needed = max(self.claim_below + self.between, math.log1p(margin))
        return _exp(needed + NormalDist().inv_cdf(POWER) * self.error) - 1


def _exp(logarithm: float) -> float:
    """Infinite where it is beyond a float: two processes that disagree widely exclude nothing."""
    return math.exp(logarithm) if logarithm < 700 else math.inf


def estimate(
    a: Sequence[Series], b: Sequence[Series], between: float, draws: int = DRAWS
) -> Estimate | str:
    """The ratio of two sides, a Series a process; or why there is none.

    between: what another process alone may change, in logarithms; it counts where a side has one
    process and they share no schedule, so that nothing shows it.
    """
    fewest = min(len(series.samples) for series in (*a, *b))
    if fewest < LEAST_SAMPLES:
        return f"{fewest} samples of a process give no interval; {LEAST_SAMPLES} are the least"
    both = {s.schedule for s in a} & {s.schedule for s in b}
    paired = both == {s.schedule for s in a} == {s.schedule for s in b}
    if paired:
        by_schedule = {series.schedule: series for series in b}
        b = [by_schedule[series.schedule] for series in a]
        if any(len(set(x.rounds) & set(y.rounds)) < LEAST_SAMPLES for x, y in zip(a, b)):
            return "too few rounds of their one schedule have a sample of both"
        return joined([ratio(x.samples, x.rounds, y.samples, y.rounds) for x, y in zip(a, b)])
    sides = [[_logs(series, draws) for series in side] for side in (a, b)]
    medians = (tuple(m for _, m, _ in sides[0]), tuple(m for _, m, _ in sides[1]))
    alone = min(len(a), len(b)) < 2
    difference = _difference(_pooled(sides[0]), _pooled(sides[1]))
    return _estimate(*difference, between if alone else 0.0, medians, paired=False)


def joined(processes: Sequence[tuple[float, float, float]]) -> Estimate:
    """One ratio of several processes: each tells (low, middle, high) of it, as pairs of a schedule
    do. The ends of a single one are the ends."""
    parts = [_ends(*each) for each in processes]
    medians = (tuple(0.0 for _ in parts), tuple(middle for _, middle, _ in parts))
    return _estimate(*_pooled(parts), 0.0, medians, paired=True)


def mean(estimates: Sequence[Estimate]) -> Estimate:
    """ln of the geometric mean of the ratios of these cases."""
    k = len(estimates)
    below = math.sqrt(sum(e.below**2 for e in estimates)) / k
    above = math.sqrt(sum(e.above**2 for e in estimates)) / k
    middle = sum(e.middle for e in estimates) / k
    between = max(e.between for e in estimates)
    medians: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    if len({tuple(map(len, e.medians)) for e in estimates}) == 1:
        # What a process does to all its cases does not average out over cases, but over processes.
        means = [np.mean([e.medians[side] for e in estimates], axis=0) for side in (0, 1)]
        medians = (tuple(map(float, means[0])), tuple(map(float, means[1])))
    return _estimate(below, middle, above, between, medians, all(e.paired for e in estimates))


def verdict(found: Estimate, margin: float) -> str:
    """`faster`, `slower`, `same` or `cannot tell`; differences below the margin are not claimed."""
    low, middle, high = found.claim
    if high < 1 and middle <= 1 - margin:
        return FASTER
    if low > 1 and middle >= 1 + margin:
        return SLOWER
    low, _, high = found.shown
    return SAME if 1 - margin <= low and high <= 1 + margin else CANNOT_TELL


def student(share: float, freedom: int) -> float:
    """t that holds this share between -t and t.

    The distribution by its finite sums (Abramowitz and Stegun, 26.7.3 and 26.7.4), inverted by
    bisection.
    """
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < share else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    angle = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    if freedom % 2:
        term, total = cosine, 0.0
        for k in range(1, freedom - 1, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        return 2 / math.pi * (angle + sine * total)
    term, total = 1.0, 0.0
    for k in range(0, freedom - 1, 2):
        total += term
        term *= cosine * cosine * (k + 1) / (k + 2)
    return sine * total


Ends = tuple[float, float, float]
"""How far the interval reaches below, the middle, how far above."""


def _estimate(
    below: float,
    middle: float,
    above: float,
    between: float,
    medians: tuple[tuple[float, ...], tuple[float, ...]],
    paired: bool,
) -> Estimate:
    """The wider of what the bootstrap and, with two processes or more, Student's t say."""
    normal = NormalDist().inv_cdf
    factor = normal((1 + CLAIMED) / 2) / normal((1 + SHOWN) / 2)
    error = max(below, above) / normal((1 + SHOWN) / 2)
    shown = claimed = 0.0
    if min(map(len, medians)) >= 2:
        spread, freedom = _across(*medians, paired=paired)
        shown, claimed = (student(share, freedom) * spread for share in (SHOWN, CLAIMED))
        error = max(error, spread)
    return Estimate(
        middle=middle,
        below=max(below, shown),
        above=max(above, shown),
        claim_below=max(factor * below, claimed),
        claim_above=max(factor * above, claimed),
        error=error,
        between=between,
        medians=medians,
        paired=paired,
    )


def _across(a: tuple[float, ...], b: tuple[float, ...], *, paired: bool) -> tuple[float, int]:
    """Standard error of the mean difference over processes, and its degrees of freedom."""
    if paired:
        differences = np.subtract(b, a)
        return float(np.std(differences, ddof=1)) / math.sqrt(len(a)), len(a) - 1
    parts = [float(np.var(side, ddof=1)) / len(side) for side in (a, b)]
    total = sum(parts)
    if total == 0:
        return 0.0, min(len(a), len(b)) - 1
    # Welch and Satterthwaite, rounded down.
    freedom = total**2 / sum(p**2 / (len(side) - 1) for p, side in zip(parts, (a, b)))
    return math.sqrt(total), max(1, int(freedom + 1e-9))


def _logs(series: Series, draws: int) -> Ends:
    """The median of one process, in logarithms; nothing finer than the clock's step."""
    low, middle, high = interval(series.samples, draws)
    step = tick(series.samples) / middle
    least = step / 2 if step < 1 else 0.0  # a step above the median: two samples, no clock's step
    below, middle, above = _ends(low, middle, high)
    return max(below, least), middle, max(above, least)


def _ends(low: float, middle: float, high: float) -> Ends:
    below = math.log(middle / low) if low > 0 else math.inf
    return below, math.log(middle), math.log(high / middle)


def _pooled(parts: Sequence[Ends]) -> Ends:
    """The mean of independent processes."""
    n = len(parts)
    below, above = (math.sqrt(sum(p[i] ** 2 for p in parts)) / n for i in (0, 2))
    return below, sum(p[1] for p in parts) / n, above


def _difference(a: Ends, b: Ends) -> Ends:
    """B minus A, each end by the parts that move it."""
    return math.hypot(b[0], a[2]), b[1] - a[1], math.hypot(b[2], a[0])
