"""The clock tried on spins: how far off it is, how often it cries wolf, and what it can see.

Everything below works on samples; ruler.py takes them. The noise floor q is fixed on the samples of
one set of processes and judged on another, by the same interval and verdict that tables use.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from ..clock.statistics import MARGIN, ratio, tick, verdict

CYCLES, TIMER = "cycles", "timer"
"""What a spin on a GPU waits for."""
BLOCK = 32
"""Rounds of one comparison."""
QUANTILE = 0.999
"""q is that quantile of |log ratio| between equal kernels; the largest until there are 1,000."""


class Bias(msgspec.Struct, frozen=True, kw_only=True):
    """What the clocks read of one spin, seconds."""

    length: float
    true: float
    readings: dict[str, float]

    def off(self, clock: str) -> float:
        return self.readings[clock] - self.true


class Alarms(msgspec.Struct, frozen=True, kw_only=True):
    """Comparisons of a spin with itself and with a longer one."""

    length: float
    planted: float
    """How much longer the other one is, relative."""
    noise: float
    """q, of the first processes."""
    margin: float
    same: int
    """Comparisons with itself, in the other processes."""
    false: int
    """Those of them that were called faster or slower."""
    slower: int
    """Comparisons with the longer one, in the other processes."""
    missed: int
    """Those of them that were not called slower."""


class Repeat(msgspec.Struct, frozen=True, kw_only=True):
    """Medians of one spin over processes, seconds."""

    length: float
    medians: tuple[float, ...]

    @property
    def spread(self) -> float:
        """(largest - smallest) / middle."""
        ordered = sorted(self.medians)
        return (ordered[-1] - ordered[0]) / ordered[len(ordered) // 2]


class Ruler(msgspec.Struct, frozen=True, kw_only=True):
    """The clock's own error table, on one machine."""

    machine: str
    device: str
    processes: int
    bias: tuple[Bias, ...]
    alarms: tuple[Alarms, ...]
    repeats: tuple[Repeat, ...]
    """Of spins by a timer: the clock's own."""
    flush: dict[str, float | str]
    seconds: float
    time: str
    cycles: tuple[Repeat, ...] = ()
    """Of spins that count cycles of a GPU: how steady its own clock is, is in them."""


@dataclass(frozen=True)
class Series:
    """Samples of one process: of a spin, of the same again, and of a longer one, by round."""

    one: Sequence[float]
    again: Sequence[float]
    longer: Sequence[float]


def alarms(length: float, planted: float, noise: list[Series], judged: list[Series]) -> Alarms:
    """False alarms and misses in the second set of processes, with q fixed on the first."""
    q = noise_floor([r for series in noise for r in _ratios(series.one, series.again)])
    every = [value for series in judged for value in series.one]
    margin = max(MARGIN, q, tick(every) / length)
    equal = [w for s in judged for w in _words(s.one, s.again, margin)]
    unlike = [w for s in judged for w in _words(s.longer, s.one, margin)]
    return Alarms(
        length=length,
        planted=planted,
        noise=q,
        margin=margin,
        same=len(equal),
        false=sum(word in ("faster", "slower") for word in equal),
        slower=len(unlike),
        missed=sum(word != "slower" for word in unlike),
    )


def noise_floor(ratios: Sequence[float]) -> float:
    """q: what the ratio of a kernel to itself exceeds once in a thousand."""
    sizes = sorted(abs(math.log(r)) for r in ratios)
    if not sizes:
        return 0.0
    at = len(sizes) - 1 if len(sizes) < 1000 else math.ceil(QUANTILE * len(sizes)) - 1
    return math.expm1(sizes[at])


def _blocks(count: int) -> Iterator[slice]:
    for start in range(0, count - BLOCK + 1, BLOCK):
        yield slice(start, start + BLOCK)


def _ratios(one: Sequence[float], other: Sequence[float]) -> list[float]:
    pairs = [(np.asarray(one[part]), np.asarray(other[part])) for part in _blocks(len(one))]
    return [float(np.median(b / a)) for a, b in pairs]


def _words(ours: Sequence[float], theirs: Sequence[float], margin: float) -> list[str]:
    """What is said of ours beside theirs, for each block of rounds."""
    rounds = range(BLOCK)
    return [
        verdict(*ratio(ours[part], rounds, theirs[part], rounds), margin=margin)
        for part in _blocks(len(ours))
    ]


def upper_bound(events: int, trials: int) -> float:
    """95 % upper bound of the rate of what was seen so often (exact for never, else Wilson's)."""
    if not trials:
        return 1.0
    if not events:
        return 1 - 0.05 ** (1 / trials)
    z, p = 1.6449, events / trials
    middle = p + z * z / (2 * trials)
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    return (middle + half) / (1 + z * z / trials)
