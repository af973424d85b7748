"""Median, interval, ratio and steadiness of samples in time order.

Neighbouring samples resemble each other, so intervals come from a moving-block bootstrap: with
block length L = max(n^(1/3), 2 tau), where tau is the integrated autocorrelation time of log t
(Kuensch 1989; Politis and White 2004 for the choice of length).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..timings import Timing

DRAWS = 2000
LEAST_BLOCKS = 10


def interval(
    samples: Sequence[float] | np.ndarray, draws: int = DRAWS, seed: int = 0
) -> tuple[float, float, float]:
    """(low, median, high): 95 % interval of the median.

    It is widened by what blocks miss of the variance, and by Student's t for their number: few
    blocks know their own spread only roughly. Of fewer than 10 blocks it is the interval between
    order statistics that the binomial distribution gives (David and Nagaraja, Order Statistics,
    3rd ed., section 7.1), or the range of the samples if they are few or resemble their
    neighbours: nothing narrower is known.
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
    wider = _widened(blocks) / math.sqrt(1 - _missed(correlation_time(values), length))
    below, above = max(0.0, middle - float(low)), max(0.0, float(high) - middle)
    return middle - wider * below, middle, middle + wider * above


def _widened(blocks: int) -> float:
    """Student's 97.5 % quantile over the normal one, times sqrt(b / (b - 1)).

    The quantile by its expansion in 1 / degrees of freedom (Abramowitz and Stegun, 26.7.5).
    """
    z, freedom = 1.959964, blocks - 1
    t = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return t / z * math.sqrt(blocks / freedom)


def _missed(tau: float, length: int) -> float:
    """Share of the variance that blocks of a length miss: 2 sum of k rho_k / (length tau).

    For an AR(1) process of this tau it is (tau^2 - 1) / (2 tau length).
    """
    return min(0.5, (tau * tau - 1) / (2 * tau * length))


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
    """tau = 1 + 2 sum of autocorrelations of log t, up to the first pair that adds to <= 0.

    That sum often stops early, so it is at least the (1 + r) / (1 - r) of an AR(1) process with
    this series' first autocorrelation r, corrected for its bias (Kendall 1954, Biometrika 41).
    """
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
    r = float((centred[:-1] * centred[1:]).sum()) / total
    if r > 2 / math.sqrt(n):  # else it may be chance
        r = min(r + (1 + 3 * r) / n, 1 - 1 / n)
        tau = max(tau, (1 + r) / (1 - r))
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


MARGIN = 0.005
"""Smallest difference that is claimed, until the machine's own noise is measured."""


APART = 3e-7
"""Two clocks of the same work may be so far apart, in seconds: windows of events come in modes of
0.2 us, and what they add is known to 0.1 us (H100, docs/clock.md)."""


def tick(samples: Sequence[float]) -> float:
    """The clock's step: the smallest difference between two samples that differ; 0 if none do."""
    steps = np.diff(np.unique(np.round(np.asarray(samples, dtype=float), 12)))
    return float(steps.min()) if len(steps) else 0.0


def margin(timings: Sequence[Timing], least: float = MARGIN) -> float:
    """The smallest relative difference that can be claimed of these: `least`, what equal kernels
    differ by here (q, where the clock was tried), or a step of the clock."""
    floors = [timing.noise or 0.0 for timing in timings]
    step = tick([value for timing in timings for value in timing.samples])
    if len({timing.method for timing in timings}) > 1:
        step = max(step, APART)
    return max(least, *floors, step / min(timing.median for timing in timings))


def verdict(low: float, middle: float, high: float, margin: float = MARGIN) -> str:
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
    """Empty, or what is wrong with the series: a step, a drift from first to last, or two modes."""
    values = np.asarray(samples, dtype=float)
    n = len(values)
    if n < 9:
        return ""
    cut = _split(values)
    if cut is not None:
        later = values > cut
        step = int(np.flatnonzero(later != later[0])[0])
        if (later[step:] == later[step]).all():  # a single change from one to the other
            a, b = np.median(values[:step]), np.median(values[step:])
            return f"not steady: {seconds(float(a))}, then {seconds(float(b))}"
    third = n // 3
    low_a, a, high_a = interval(values[:third])
    low_b, b, high_b = interval(values[-third:])
    if abs(b / a - 1) > 0.01 and (low_b > high_a or low_a > high_b):
        return f"not steady: {seconds(a)}, then {seconds(b)}"
    if cut is None or n < 20:  # of fewer, two clusters come about by chance
        return ""
    shares = [
        f"{seconds(float(np.median(part)))} ({100 * len(part) / n:.0f} %)"
        for part in (values[values <= cut], values[values > cut])
    ]
    return f"two modes: {', '.join(shares)}"


def _split(values: np.ndarray) -> float | None:
    """The largest time of the lower of two clusters; None if there are not two.

    Each holds at least 5 %; they are more than 3 spreads and 5 % apart.
    """
    ordered = np.sort(values)
    logs = np.log(np.maximum(ordered, 1e-12))
    n = len(logs)
    least = max(2, math.ceil(0.05 * n))
    gaps = np.diff(logs)[least - 1 : n - least]
    if len(gaps) == 0:
        return None
    cut = int(gaps.argmax()) + least
    parts = logs[:cut], logs[cut:]
    spread = max(1.4826 * float(np.median(np.abs(part - np.median(part)))) for part in parts)
    apart = float(np.median(parts[1]) - np.median(parts[0]))
    if float(gaps.max()) < max(3 * spread, 0.05) or apart < 3 * spread:
        return None
    return float(ordered[cut - 1])


def seconds(value: float) -> str:
    """A time for people: `45.1 us`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns"
