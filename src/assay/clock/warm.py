"""Warming up: the first call apart, then alone, then together until the times stay as they are."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from .member import Member

ALONE_SECONDS = 0.1
LAST = 20
"""Calls of which the median is what a caller waits."""
WINDOW = 10
"""Samples of which two successive medians are compared."""
STILL = 0.005
"""They may be this far apart, relative, or as far as their own spread explains."""


def alone(
    member: Member, call: Callable[[], None], restore: Callable[[], None] | None, device: str
) -> float:
    """Calls until the time is spent. Seconds of the fastest call but the first."""

    def once() -> float:
        if restore:
            restore()
        sync(device)
        begin = time.perf_counter()
        call()
        sync(device)
        return time.perf_counter() - begin

    member.first_seconds = once()
    start, taken = time.perf_counter(), list[float]()
    while len(taken) < 3 or time.perf_counter() - start < ALONE_SECONDS:
        taken.append(once())
    member.warm_calls = len(taken)
    member.warm_seconds = time.perf_counter() - start + member.first_seconds
    member.wall_seconds = statistics.median(taken[-LAST:])
    return min(taken)


def together(members: list[Member], sample: Callable[[Member], float], cap: float) -> None:
    """Samples that are not kept, in turn, until all kernels' are still or `cap` seconds are spent.

    Alone they were warm; together they share caches, memory and power.
    """
    start = time.monotonic()
    found: dict[int, list[float]] = {member.index: [] for member in members}
    while True:
        for member in members:
            begun = time.monotonic()
            found[member.index].append(sample(member))
            member.warm_calls += 1
            member.warm_seconds += time.monotonic() - begun
        done = len(found[members[0].index])
        for member in members:
            member.still = still(found[member.index])
        if done % WINDOW == 0 and done >= 2 * WINDOW and all(member.still for member in members):
            return
        if done >= 2 and time.monotonic() - start > cap:
            return


def still(samples: list[float]) -> bool:
    """Whether the last two windows have the same median, as far as their spread lets one know."""
    if len(samples) < 2 * WINDOW:
        return False
    before, after = samples[-2 * WINDOW : -WINDOW], samples[-WINDOW:]
    a, b = statistics.median(before), statistics.median(after)
    spread = min(_spread(before), _spread(after))  # a step within one makes it wide
    return abs(b - a) <= max(STILL * a, 3 * spread)


def _spread(samples: list[float]) -> float:
    """Standard error of the median of samples without correlation: 1.2533 sigma / sqrt(n)."""
    deviation = 1.4826 * float(np.median(np.abs(np.asarray(samples) - np.median(samples))))
    return 1.2533 * deviation / len(samples) ** 0.5


def sync(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
