"""What else is known of a call on a GPU: what it allocates, its period, its speed on and on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from . import events, graphs
from .member import Member
from .power import Nvml, Reading, throttled

BATCH_SECONDS = 0.02
"""Calls are queued in batches this long, one ahead of the one that runs."""
MOST_BATCH = 2000
UNCAPTURED = "it can't be captured in a graph"
"""A capture that failed leaves torch's random numbers unusable: the process does no other case."""
FIRST, LAST = 0.1, 2 / 3
"""The first tenth is told apart, and the last third."""


def memory(member: Member, device: str) -> dict[str, int]:
    """What torch's allocator gives out in one call, when nothing of an earlier one is held."""
    member.outputs.clear()
    torch.cuda.synchronize(device)
    before, held = torch.cuda.memory_stats(device), torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    with torch.no_grad():
        member.call()
    torch.cuda.synchronize(device)
    after = torch.cuda.memory_stats(device)

    def more(name: str) -> int:
        return int(after.get(name, 0)) - int(before.get(name, 0))

    return {
        "allocations": more("allocation.all.allocated"),
        "bytes": more("allocated_bytes.all.allocated"),
        "peak_bytes": torch.cuda.max_memory_allocated(device) - held,
        "reserved_bytes": torch.cuda.memory_reserved(device),
    }


def period(member: Member, about: float) -> dict[str, Any]:
    """Seconds a call in a CUDA graph, or why there are none."""
    try:
        found = graphs.period(member.call, about)
    except RuntimeError as error:  # capturing says so: it allocates, synchronises or copies
        return {"no_period": f"{UNCAPTURED}: {str(error).splitlines()[0]}"}
    if not found.straight:
        return {
            "no_period": f"graphs of n, 2n and 4n calls are {100 * found.bent:+.1f} % off a line"
        }
    return {"period_seconds": found.seconds}


def sustained(call: Callable[[], None], about: float, seconds: float, nvml: Nvml) -> dict[str, Any]:
    """The same call back to back for so many seconds: in graphs, so that no launch is in it."""
    calls = max(1, min(MOST_BATCH, int(BATCH_SECONDS / max(about, 1e-6))))
    try:
        batch, by = graphs.captured(call, calls).replay, "graphs"
    except RuntimeError:  # it says so: `by`

        def batch() -> None:
            for _ in range(calls):
                call()

        by = "calls"
    torch.cuda.synchronize()
    marks: list[Any] = [_mark()]
    times: list[tuple[float, float]] = []
    readings: list[tuple[float, Reading]] = []
    start = time.monotonic()
    while not times or time.monotonic() - start < seconds:
        batch()
        marks.append(_mark())
        if len(marks) < 3:
            continue
        marks[-2].synchronize()  # the batch before; the one just queued keeps the GPU busy
        now = time.monotonic() - start
        times.append((now, 1e-3 * float(marks[-3].elapsed_time(marks[-2])) / calls))
        if not nvml.missing:
            readings.append((now, nvml.read()))
    torch.cuda.synchronize()
    return {"by": by, **of(times, readings)}


def of(times: list[tuple[float, float]], readings: list[tuple[float, Reading]]) -> dict[str, Any]:
    """What is told of batches, each with when it ended and its seconds a call."""
    whole = times[-1][0]
    early = [t for at, t in times if at <= FIRST * whole] or [times[0][1]]
    late = [t for at, t in times if at >= LAST * whole]
    then = [reading for at, reading in readings if at >= LAST * whole]
    found: dict[str, Any] = {
        "seconds": whole,
        "period": sum(late) / len(late),
        "first_period": sum(early) / len(early),
    }
    if then:
        found |= {
            "clock_hz": [min(r.hertz for r in then), max(r.hertz for r in then)],
            "watts": sum(r.watts for r in then) / len(then),
            "celsius": max(r.celsius for r in then),
            "held": throttled(then),
        }
    return found


def _mark() -> Any:
    mark = events._event()
    mark.record()
    return mark
