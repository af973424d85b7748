"""What may differ between two processes that no interval of one process contains.

Where memory lies, clocks, tuning, and what else the machine does meanwhile: two benches of the same
kernel on a CPU that others use were seen 40 % apart, each with an interval of 2 %. Several
processes a side show it. Of one a side, it is judged by what is known to be the same on both: the
reference (`eager`), which was sampled in the same rounds as the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..types import Timing
from . import ratios
from .model import Entry

CONTROL = "eager"
LEAST, LEAST_ON_CPU = 0.01, 0.05
"""Even if the reference shows no difference. The first is a guess; on a shared CPU, kernels were
seen to move by 6 % beside a reference that had moved by 0.7 %."""
FARTHER = 3.0
"""A kernel may move this many times as far as the reference: twice as far was seen."""
UNSEEN = {"cupti": LEAST, "events": LEAST, "nvbench cold": LEAST, "wall": math.log(2)}
"""Where no reference was timed beside it, by method: on a GPU that nobody shares, little but its
clock changes, and that is in the rows; a CPU may have done anything. First guesses."""


def between(
    a: Entry, b: Entry, controls: tuple[Sequence[Entry], Sequence[Entry]], draws: int
) -> tuple[float, str]:
    """How far two processes may be apart, in logarithms, and how that is known."""
    assert a.row.timing
    assert b.row.timing
    method, clock = a.row.timing.method, _clock(a.row.timing, b.row.timing)
    beside = [_beside(entry, of) for entry, of in zip((a, b), controls)]
    if a.row.machine == b.row.machine and beside[0] and beside[1]:
        found = ratios.estimate([series(beside[0])], [series(beside[1])], 0.0, draws)
        if isinstance(found, ratios.Estimate):
            moved = FARTHER * (abs(found.middle) + max(found.below, found.above))
            said = f"{CONTROL} beside it: {math.exp(found.middle):.3g}"
            least = LEAST_ON_CPU if method == "wall" else LEAST
            return _told(max(least, clock, moved), said)
    unseen = UNSEEN.get(method, UNSEEN["wall"])
    return _told(max(unseen, clock), f"no {CONTROL} beside it")


def _told(apart: float, how: str) -> tuple[float, str]:
    return apart, f"{how}, so processes may differ by {100 * math.expm1(apart):.2g} %"


def _beside(entry: Entry, others: Sequence[Entry]) -> Timing | None:
    """The reference in the same schedule."""
    assert entry.row.timing
    for other in others:
        timing = other.row.timing
        if timing and timing.schedule == entry.row.timing.schedule:
            return timing
    return None


def _clock(a: Timing, b: Timing) -> float:
    """How far apart the SM clocks were."""
    if not a.clock_hz or not b.clock_hz:
        return 0.0
    low, high = (f(*a.clock_hz, *b.clock_hz) for f in (min, max))
    return math.log(high / low) if low > 0 else 0.0


def series(timing: Timing) -> ratios.Series:
    """The samples of one process."""
    return ratios.Series(timing.samples, timing.rounds, timing.schedule)
