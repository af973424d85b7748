"""One sample on a GPU: event to event, cold L2, with the launch hidden behind a busy GPU.

Before each sample the L2 is refilled by reading twice its size (clean lines, so that the kernel
pays no write-back of ours), then the GPU is kept busy until the host has queued the kernel. If the
first event is over before the host is done, launch time is in the window: the sample says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

SLEEP_HZ = 2.0e9
"""Cycles a second of torch.cuda._sleep, from above: at a lower clock it sleeps longer."""
MARGIN_SECONDS = 1e-4
TRIES = 6
"""A sample in which the host was late is taken again with twice the wait, this often."""
MOST_SLEEP_SECONDS = 0.02
"""A host that needs longer than this to queue one call is not hidden: it is reported."""


class Flush:
    """Refills the L2 of a device."""

    def __init__(self, device: str):
        self.l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
        self._buffer = torch.ones(max(1, self.l2_bytes // 2), dtype=torch.int32, device=device)
        self._sum = torch.zeros((), dtype=torch.int64, device=device)

    def __call__(self) -> None:
        torch.sum(self._buffer, dim=0, dtype=torch.int64, out=self._sum)


@dataclass
class Events:
    """Samples one call on a GPU."""

    call: Callable[[], None]
    restore: Callable[[], None] | None
    flush: Callable[[], None]
    """Brings the cache into its state, before each sample."""
    host_seconds: float
    """How long the host needs to queue the call, as measured before the samples."""
    calls: int = 1
    method: str = "events"
    cache: str = "cold L2"
    retaken: int = 0
    """Samples taken again because the GPU began before the host was done."""
    late: int = 0
    """Samples for which even the longest wait did not help: launch time is in them."""
    wait: float = 0.0
    """How long the GPU is kept busy before the call; 0: twice the host's time and a margin."""

    def __post_init__(self) -> None:
        self.wait = self.wait or 2 * self.host_seconds + MARGIN_SECONDS
        self.wait = min(self.wait, MOST_SLEEP_SECONDS)

    def sample(self) -> float:
        """Seconds between the events."""
        for _ in range(TRIES):
            seconds, late = self._once()
            if not late:
                return seconds
            self.retaken += 1
            self.wait = min(2 * self.wait, MOST_SLEEP_SECONDS)
        self.late += 1
        return seconds

    def _once(self) -> tuple[float, bool]:
        start, end = _event(), _event()
        # Taken before the call: a kernel that replaces them replaces them too late.
        stop, over, wait, between = end.record, start.query, end.synchronize, start.elapsed_time
        if self.restore:
            self.restore()
        self.flush()
        torch.cuda._sleep(int(self.wait * SLEEP_HZ))
        start.record()
        self.call()
        stop()
        late = bool(over())
        wait()
        return float(between(end)) * 1e-3, late


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)


def host_seconds(call: Callable[[], None]) -> float:
    """Median time of the host to queue a call, while the GPU is busy."""
    taken = []
    for _ in range(7):
        torch.cuda.synchronize()
        torch.cuda._sleep(int(2e-3 * SLEEP_HZ))
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    torch.cuda.synchronize()
    return sorted(taken)[len(taken) // 2]
