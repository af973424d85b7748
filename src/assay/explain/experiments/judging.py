"""Predicted against seen: an experiment's word, from samples of one interleaved schedule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...clock.statistics import ratio

FACTOR = 1.5
"""A gain within this factor of its prediction came true."""
SOME = 1.05
"""A gain below this, or above its inverse, has no direction."""
CONFIRMED, REFUTED, CANNOT, NOT = "confirmed", "refuted", "cannot tell", "not tried"


@dataclass(frozen=True)
class Trial:
    """One experiment: what was changed, what was to come of it, and what came."""

    name: str
    cause: str
    """Of a finding; empty: it tries the model."""
    what: str
    word: str
    """CONFIRMED, REFUTED, CANNOT or NOT."""
    said: str = ""
    """What was changed, in numbers; of NOT, the reason."""
    clock: str = ""
    predicted: float | None = None
    """Times faster for the same work. Below 1: slower. None: the model says nothing of it."""
    before: float | None = None
    """Median seconds of the unchanged call, in the schedule of the experiment."""
    after: float | None = None
    """Median seconds of the changed call: an experiment's, not a kernel's speed."""
    gain: tuple[float, float, float] | None = None
    """(low, middle, high) of before over after, for the same work, by rounds."""
    late: int = 0
    """Samples with launch time in them."""


def word(predicted: float, gain: tuple[float, float, float]) -> str:
    """CONFIRMED if the whole interval is within FACTOR of what was predicted and on its side of 1;
    REFUTED if none of it is; CANNOT else."""
    low, _, high = gain
    least, most = predicted / FACTOR, predicted * FACTOR
    if predicted > SOME:
        least = max(least, SOME)
    elif predicted < 1 / SOME:
        most = min(most, 1 / SOME)
    if least <= low and high <= most:
        return CONFIRMED
    return REFUTED if high < least or low > most else CANNOT


def seen(
    base: Sequence[float],
    base_rounds: Sequence[int],
    changed: Sequence[float],
    rounds: Sequence[int],
    work: float = 1.0,
) -> tuple[float, float, float]:
    """(low, middle, high) of the gain for the same work. work: times a call's that it does."""
    low, middle, high = ratio(changed, rounds, base, base_rounds)
    return low * work, middle * work, high * work


def capped(predicted: float, most: float | None) -> float:
    """A prediction, no larger than what an experiment could show."""
    return min(predicted, most if most is not None else math.inf)
