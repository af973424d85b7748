"""Who waits for whom: how busy the device was, its gaps, launches, copies and waits."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .spans import WORK, Span, covered
from .trace import Trace

LAUNCHES = ("LaunchKernel", "LaunchCooperativeKernel", "GraphLaunch")
WAITS = re.compile(r"Synchronize|^cudaMemcpy$|^cuMemcpy\w+(?<!Async)_v2$")
"""Calls that return once the device is done: of copies, those that are not asynchronous."""
HOST_BOUND, DEVICE_BOUND = 0.5, 0.9
"""Shares of the time in which the device is busy, below and above which one of them decides."""


@dataclass(frozen=True)
class Copy:
    """Copies of one kind, such as `Memcpy HtoD (Pageable -> Device)`."""

    name: str
    calls: int
    bytes: int | None
    """None: the file does not say."""
    seconds: float


@dataclass(frozen=True)
class Wait:
    """Calls in which the host waits for the device."""

    name: str
    calls: int
    seconds: float
    implied: bool
    """By an operator, as `.item()` does; else the program, or the profiler, asked for it."""


@dataclass(frozen=True)
class Timeline:
    """Of the stretch from the first to the last event of host or device."""

    seconds: float
    busy_seconds: float
    """In which at least one kernel, copy or fill ran."""
    gap_seconds: float
    """Between the first and the last work of the device, with nothing running."""
    longest_gap_seconds: float
    launches: int
    copies: tuple[Copy, ...]
    waits: tuple[Wait, ...]

    @property
    def busy(self) -> float:
        """Share of the time in which the device was busy; 0 without any."""
        return self.busy_seconds / self.seconds if self.seconds else 0.0

    @property
    def bound(self) -> str:
        """`host`, `device`, `both` in turn, or empty where no work of a device was recorded."""
        if not self.busy_seconds:
            return ""
        return (
            "host" if self.busy < HOST_BOUND else "device" if self.busy >= DEVICE_BOUND else "both"
        )


def timeline(trace: Trace) -> Timeline:
    """The whole of a trace. What a profiler itself takes is part of the host's time in it."""
    work = trace.of(*WORK)
    host = trace.of("operator", "range", "call")
    every = [*work, *host]
    whole = max(s.end for s in every) - min(s.start for s in every) if every else 0.0
    stretches = covered(work)
    busy = sum(end - start for start, end in stretches)
    gaps = [after[0] - before[1] for before, after in itertools.pairwise(stretches)]
    calls = trace.of("call")
    return Timeline(
        seconds=whole,
        busy_seconds=busy,
        gap_seconds=sum(gaps),
        longest_gap_seconds=max(gaps, default=0.0),
        launches=sum(any(part in call.name for part in LAUNCHES) for call in calls),
        copies=tuple(_copies(work)),
        waits=tuple(_waits(calls, {span.owner for span in trace.of("operator")})),
    )


def _copies(work: tuple[Span, ...]) -> Iterator[Copy]:
    names = sorted({span.name for span in work if span.kind == "memcpy"})
    for name in names:
        each = [s for s in work if s.kind == "memcpy" and s.name == name]
        sizes = [s.facts.get("bytes") for s in each]
        known = [int(size) for size in sizes if size is not None]
        total = sum(known) if len(known) == len(sizes) else None
        yield Copy(name, len(each), total, sum(s.seconds for s in each))


def _waits(calls: tuple[Span, ...], operators: set[int | None]) -> Iterator[Wait]:
    """torch.profiler gives a call the number (External id) of the operator or range it lies in."""
    groups: dict[tuple[str, bool], list[float]] = {}
    for call in calls:
        if WAITS.search(call.name):
            implied = call.owner is not None and call.owner in operators
            groups.setdefault((call.name, implied), []).append(call.seconds)
    for (name, implied), each in sorted(groups.items()):
        yield Wait(name, len(each), sum(each), implied)


def text(found: Timeline) -> Iterator[str]:
    """As lines of 80 columns."""
    if not found.bound:
        yield f"{found.seconds * 1e6:,.1f} us recorded, none of them of a GPU"
        return
    who = {"host": "the host decides", "device": "the device decides", "both": "both in turn"}
    yield (
        f"the device was busy in {found.busy_seconds * 1e6:,.1f} of {found.seconds * 1e6:,.1f} us "
        f"({found.busy:.1%}): {who[found.bound]}"
    )
    yield (
        f"{found.launches:,} launches; gaps {found.gap_seconds * 1e6:,.1f} us, the longest "
        f"{found.longest_gap_seconds * 1e6:,.1f} us"
    )
    for copy in found.copies:
        size = "bytes unknown" if copy.bytes is None else f"{copy.bytes:,} bytes"
        yield f"{copy.name}: {copy.calls:,} times, {size}, {copy.seconds * 1e6:,.1f} us"
    for wait in found.waits:
        who_asked = "implied by an operator" if wait.implied else "asked for"
        yield f"{wait.name}: {wait.calls:,} times, {wait.seconds * 1e6:,.1f} us, {who_asked}"
