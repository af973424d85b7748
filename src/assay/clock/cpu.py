"""One sample on the CPU: the monotonic clock round enough calls to be far above its step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from ..errors import AssayError

SAMPLE_SECONDS = 5e-4
"""A sample lasts at least this long: 10,000 steps of the clock, so its own cost is lost in it."""
MOST_CALLS = 10_000


@dataclass(frozen=True)
class Cpu:
    """Samples one call on the CPU; hot, if nothing flushes: the same buffers were just used."""

    call: Callable[[], None]
    restore: Callable[[], None] | None
    calls: int
    flush: Callable[[], None] | None = None
    method: str = "wall"
    cache: str = "hot"

    def sample(self) -> float:
        """Seconds a call."""
        if self.restore:
            self.restore()
        else:
            # The kernel sampled before this one had its own threads; this call gets ours running.
            self.call()
        if self.flush:
            self.flush()
        now = time.perf_counter_ns  # a kernel that replaces it replaces it too late
        start = now()
        for _ in range(self.calls):
            self.call()
        return (now() - start) * 1e-9 / self.calls


def calls_for(seconds: float, once: bool) -> int:
    """Calls a sample, of about so many seconds each; once: what precedes a call lasts for one."""
    if once:
        return 1
    return min(MOST_CALLS, max(1, math.ceil(SAMPLE_SECONDS / max(seconds, 1e-9))))


class Flush:
    """Refills the last-level cache of a CPU."""

    def __init__(self, cache: int):
        if not cache:
            raise AssayError("--cache cold: the size of this CPU's last-level cache is not known")
        self._buffer = torch.ones(max(1, 2 * cache // 4), dtype=torch.int32)

    def read(self) -> None:
        torch.sum(self._buffer)

    def write(self) -> None:
        self._buffer.fill_(1)
