"""Samples of several kernels that do one thing -> a Roof: the fastest, with its interval.

The kernels take turns in random order. Sampling ends when the interval of each is narrow, or the
time is spent; a kernel whose launch could not be hidden is no ceiling.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..clock.plausible import LATE_SHARE
from ..clock.statistics import interval, steadiness
from ..errors import NotRun
from ..types import Roof

LEAST_ROUNDS, LOOK_ROUNDS, WARM_ROUNDS = 12, 16, 2
WIDTH = 0.0025
"""Half-width of the interval of the median, relative, at which a ceiling is known well enough."""


@dataclass(frozen=True)
class Candidate:
    """A kernel, and the clock that takes one sample of it."""

    by: str
    clock: Any
    """Has `sample() -> float`, seconds; and `late`, how many samples held their launch."""


@dataclass(frozen=True)
class Ask:
    """One ceiling to be measured."""

    name: str
    unit: str
    """`B/s`, `FLOP/s` or `s`."""
    work: float
    """Bytes or FLOP a sample; for a time, how many of it a sample holds."""
    candidates: Sequence[Candidate]
    bytes: int | None = None
    shape: str = ""
    cache: str = ""

    @property
    def label(self) -> str:
        """`copy 1048576 bytes cold L2`: no two of one device are called the same."""
        size = f"{self.bytes} bytes" if self.bytes is not None else ""
        return " ".join(part for part in (self.name, size, self.shape, self.cache) if part)


@dataclass
class Series:
    """What was sampled of one candidate."""

    candidate: Candidate
    samples: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


def measured(
    ask: Ask,
    seconds: float,
    *,
    hertz: Callable[[], float] | None = None,
    now: Callable[[], float] = time.monotonic,
    seed: int = 0,
) -> Roof:
    """The ceiling, of at least 12 rounds over all candidates and about `seconds` of sampling.

    hertz: reads the SM clock beside each round. Raises NotRun if nothing believable was sampled.
    """
    series = [Series(candidate) for candidate in ask.candidates]
    order, clocks = random.Random(seed), []
    for one in WARM_ROUNDS * series:
        one.candidate.clock.sample()
    begin, rounds = now(), 0
    while rounds < LEAST_ROUNDS or now() - begin < seconds:
        turn = list(series)
        order.shuffle(turn)
        for one in turn:
            one.samples.append(float(one.candidate.clock.sample()))
        if hertz is not None:
            clocks.append(hertz())
        rounds += 1
        if rounds >= LOOK_ROUNDS and rounds % LOOK_ROUNDS == 0 and all(map(_known, series)):
            break
    return _roof(ask, _honest(ask, series), clocks)


def _known(one: Series) -> bool:
    low, middle, high = interval(one.samples, draws=200)
    return (high - low) / 2 <= WIDTH * middle


def _honest(ask: Ask, series: list[Series]) -> list[Series]:
    """Those whose samples can be believed, the fastest first. Raises NotRun if there are none."""
    left, why = [], ""
    for one in series:
        late = getattr(one.candidate.clock, "late", 0)
        if min(one.samples) <= 0:
            why = f"{one.candidate.by}: below the timer's resolution"
        elif late > LATE_SHARE * len(one.samples):
            why = (
                f"{one.candidate.by}: the launch was not hidden in {late} of "
                f"{len(one.samples)} samples"
            )
        else:
            left.append(one)
    if not left:
        raise NotRun(why or f"{ask.name}: no kernel to measure it by")
    return sorted(left, key=lambda one: one.median)


def _roof(ask: Ask, ranked: list[Series], clocks: list[float]) -> Roof:
    best = ranked[0]
    low, middle, high = interval(best.samples)
    value, least, most = middle / ask.work, low / ask.work, high / ask.work
    if ask.unit != "s":
        value, least, most = ask.work / middle, ask.work / high, ask.work / low
    return Roof(
        name=ask.name,
        unit=ask.unit,
        value=value,
        low=least,
        high=most,
        samples=tuple(best.samples),
        work=ask.work,
        bytes=ask.bytes,
        shape=ask.shape,
        cache=ask.cache,
        by=best.candidate.by,
        beaten=tuple(one.candidate.by for one in ranked[1:]),
        clock_hz=(min(clocks), max(clocks)) if clocks else None,
        steady=steadiness(best.samples),
    )
