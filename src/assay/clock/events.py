"""One sample on a GPU: event to event, cold L2, with the launch hidden behind a busy GPU.

Two events read more than what lies between them takes: on an H100, 2.4 us more than CUPTI's span
of a kernel of any length. That fixed cost is measured on a kernel of ours by both clocks, and taken
off.

Before each sample the L2 is refilled by reading twice its size (clean lines, so that the kernel
pays no write-back of ours), then the GPU is kept busy until the host has queued the kernel. If the
first event is over before the host is done, launch time is in the window: the sample says so.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from .protocol import SHORT_WINDOWS
from .witness import ROUNDS, Witness

SLEEP_HZ = 2.0e9
"""Cycles a second of torch.cuda._sleep, from above: at a lower clock it sleeps longer."""
MARGIN_SECONDS = 1e-4
TRIES = 6
"""A sample in which the host was late is taken again with twice the wait, this often."""
CALMER = 0.95
"""A wait that one hiccup of the host made longer is shortened by this at every sample in time."""
MOST_SLEEP_SECONDS = 0.02
"""A host that needs longer than this to queue one call is not hidden: it is reported."""


class Flush:
    """Refills the L2 of a device by reads."""

    def __init__(self, device: str):
        self.l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
        self._buffer = torch.ones(max(1, self.l2_bytes // 2), dtype=torch.int32, device=device)
        self._sum = torch.zeros((), dtype=torch.int64, device=device)

    def __call__(self) -> None:
        torch.sum(self._buffer, dim=0, dtype=torch.int64, out=self._sum)

    def write(self) -> None:
        """The same by writes, which leaves lines that must be written back."""
        self._buffer.fill_(1)


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
    fixed: float = 0.0
    """Seconds that events read too much, which samples are free of."""
    windows: int = 1
    """Windows that a sample is the mean of."""
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
        self._least = self.wait

    def sample(self) -> float:
        """Seconds between the events, without their fixed cost."""
        taken = [self._window() for _ in range(self.windows)]
        self.late += any(late for _, late in taken)
        return statistics.fmean(seconds for seconds, _ in taken) - self.fixed

    def _window(self) -> tuple[float, bool]:
        """Seconds, and whether launch time is in them whatever was tried."""
        for _ in range(TRIES):
            self.prepare()
            seconds, late = self.timed()
            if not late:
                self.wait = max(self._least, CALMER * self.wait)
                return seconds, False
            self.retaken += 1
            self.wait = min(2 * self.wait, MOST_SLEEP_SECONDS)
        return seconds, True

    def unhurried(self, times: float = 4.0) -> Events:
        """The same with a longer wait: under a profiler, launching takes longer."""
        return replace(self, wait=min(times * self.wait, MOST_SLEEP_SECONDS))

    def prepare(self) -> None:
        """What comes before every call: other inputs, cold caches, a GPU that is busy."""
        if self.restore:
            self.restore()
        self.flush()
        torch.cuda._sleep(int(self.wait * SLEEP_HZ))

    def forget(self) -> None:
        """What was seen while warming up is over."""
        self.late = self.retaken = 0

    def timed(self) -> tuple[float, bool]:
        """Seconds of a call that was prepared, with what events add, and whether it came late."""
        start, end = _event(), _event()
        # Taken before the call: a kernel that replaces them replaces them too late.
        stop, over, wait, between = end.record, start.query, end.synchronize, start.elapsed_time
        start.record()
        self.call()
        stop()
        late = bool(over())
        wait()
        return float(between(end)) * 1e-3, late


SPIN_CYCLES, SPIN_STEP = 12_000, 1_237
"""Twelve spins of 6 to 13 us. How events fall on their clock depends on the length, by 0.1 us."""
SPINS = 5


def fixed_seconds(flush: Flush, witness: Witness) -> float | None:
    """What two events read more than CUPTI's span of the same kernel; None without CUPTI."""
    lengths = [SPIN_CYCLES + i * SPIN_STEP for i in range(ROUNDS)]
    turns = itertools.cycle(lengths)
    seen = witness.watch(_spin(lengths[0], flush).unhurried().prepare, lambda: _sleep(next(turns)))
    if seen is None or len(seen.spans) != ROUNDS:
        return None
    clocks = [_spin(length, flush) for length in lengths]
    windows = [statistics.median(clock.sample() for _ in range(SPINS)) for clock in clocks]
    return statistics.median(window - span for window, span in zip(windows, seen.spans))


def _spin(cycles: int, flush: Flush) -> Events:
    host = host_seconds(lambda: _sleep(cycles))
    return Events(lambda: _sleep(cycles), None, flush, host, windows=SHORT_WINDOWS)


def _sleep(cycles: int) -> None:
    torch.cuda._sleep(cycles)


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)


QUEUED_SECONDS, MOST_QUEUED = 1e-3, 32


def queued_seconds(call: Callable[[], None], about: float) -> float:
    """Time of the host to queue a call behind others of its kind, while the GPU is busy.

    about: how long one takes that comes alone, in seconds.
    """
    calls = max(1, min(MOST_QUEUED, int(QUEUED_SECONDS / max(about, 1e-7))))
    torch.cuda.synchronize()
    torch.cuda._sleep(int(2 * QUEUED_SECONDS * SLEEP_HZ))
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    taken = time.perf_counter() - begin
    torch.cuda.synchronize()
    return taken / calls


def host_seconds(call: Callable[[], None]) -> float:
    """Median time of the host to queue a call that comes alone, while the GPU is busy."""
    taken = []
    for _ in range(7):
        torch.cuda.synchronize()
        torch.cuda._sleep(int(2e-3 * SLEEP_HZ))
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    torch.cuda.synchronize()
    return sorted(taken)[len(taken) // 2]
