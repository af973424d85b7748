"""Median, interval, ratio and steadiness of samples in time order.

Neighbouring samples resemble each other, so intervals come from a moving-block bootstrap: with
block length L = max(n^(1/3), 2 tau), where tau is the integrated autocorrelation time of log t
(Kuensch 1989; Politis and White 2004 for the choice of length).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

DRAWS = 2000
LEAST_BLOCKS = 5


def interval(
    samples: Sequence[float] | np.ndarray, draws: int = DRAWS, seed: int = 0
) -> tuple[float, float, float]:
    """(low, median, high): 95 % interval of the median.

    Of fewer than 5 blocks it is the interval between order statistics that the binomial
    distribution gives (David and Nagaraja, Order Statistics, 3rd ed., section 7.1), or the range
    of the samples if they are few or resemble their neighbours: nothing narrower is known.
    """
    values = np.asarray(samples, dtype=float)
    middle = float(np.median(values))
    length = block_length(values)
    blocks = len(values) // length
    if blocks < LEAST_BLOCKS:
        independent = correlation_time(values) < 2
        skip = _skipped(len(values)) if independent else 0
        ordered = np.sort(values)
        return float(ordered[skip]), middle, float(ordered[-1 - skip])
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, len(values) - length + 1, size=(draws, blocks))
    drawn = values[starts[..., None] + np.arange(length)].reshape(draws, -1)
    low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])
    return float(low), middle, float(high)


def _skipped(n: int) -> int:
    """How many order statistics may be left out at either end of a 95 % interval of the median."""
    tail, skip = 0.0, 0
    for k in range(n // 2):
        tail += math.comb(n, k) * 0.5**n
        if tail > 0.025:
            break
        skip = k
    return skip


def block_length(values: np.ndarray) -> int:
    """Block length of the bootstrap, in samples."""
    n = len(values)
    return min(n, max(math.ceil(n ** (1 / 3)), math.ceil(2 * correlation_time(values))))


def correlation_time(values: np.ndarray) -> float:
    """tau = 1 + 2 sum of autocorrelations of log t, up to the first pair that adds to <= 0."""
    n = len(values)
    logs = np.log(np.maximum(values, 1e-12))
    centred = logs - logs.mean()
    total = float((centred**2).sum())
    if n < 4 or total <= 0:
        return 1.0
    tau, lag = 1.0, 1
    while lag + 1 < n // 2:
        pair = [float((centred[: n - k] * centred[k:]).sum()) / total for k in (lag, lag + 1)]
        if sum(pair) <= 0:
            break
        tau += 2 * sum(pair)
        lag += 2
    return max(1.0, tau)


def ratio(
    ours: Sequence[float],
    our_rounds: Sequence[int],
    theirs: Sequence[float],
    their_rounds: Sequence[int],
) -> tuple[float, float, float]:
    """(low, middle, high) of theirs / ours, paired by the round of their one schedule."""
    mine, other = dict(zip(our_rounds, ours)), dict(zip(their_rounds, theirs))
    shared = sorted(set(mine) & set(other))
    if not shared:
        raise ValueError("no round in common: these were not timed in one schedule")
    logs = np.log([other[r] / mine[r] for r in shared])
    low, middle, high = interval(np.exp(logs))
    return low, middle, high


def verdict(low: float, middle: float, high: float, margin: float = 0.005) -> str:
    """`faster`, `slower`, `same` or `cannot tell` for a ratio theirs / ours and its interval.

    margin: differences below it are not claimed (0.5 % until the machine's own is measured).
    """
    if low > 1 and middle >= 1 + margin:
        return "faster"
    if high < 1 and middle <= 1 - margin:
        return "slower"
    if 1 - margin <= low and high <= 1 + margin:
        return "same"
    return "cannot tell"


def steadiness(samples: Sequence[float]) -> str:
    """Empty, or what is wrong with the series: it drifts from first to last, or has two modes."""
    values = np.asarray(samples, dtype=float)
    n = len(values)
    if n < 9:
        return ""
    third = n // 3
    first, last = values[:third], values[-third:]
    low_a, a, high_a = interval(first)
    low_b, b, high_b = interval(last)
    if abs(b / a - 1) > 0.01 and (low_b > high_a or low_a > high_b):
        return f"not steady: {seconds(a)}, then {seconds(b)}"
    return _modes(values)


def _modes(values: np.ndarray) -> str:
    """Two clusters of log t, each of at least 5 %, more than 3 spreads and 5 % apart."""
    logs = np.sort(np.log(np.maximum(values, 1e-12)))
    n = len(logs)
    least = max(2, math.ceil(0.05 * n))
    if n < 20:
        return ""
    gaps = np.diff(logs)[least - 1 : n - least]
    if len(gaps) == 0:
        return ""
    cut = int(gaps.argmax()) + least
    one, two = logs[:cut], logs[cut:]
    spread = max(1.4826 * float(np.median(np.abs(part - np.median(part)))) for part in (one, two))
    apart = float(np.median(two) - np.median(one))
    if float(gaps.max()) < max(3 * spread, 0.05) or apart < 3 * spread:
        return ""
    shares = [
        f"{seconds(float(np.exp(np.median(p))))} ({100 * len(p) / n:.0f} %)" for p in (one, two)
    ]
    return f"two modes: {', '.join(shares)}"


def seconds(value: float) -> str:
    """A time for people: `45.1 us`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns"
