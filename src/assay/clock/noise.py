"""Other load on a CPU: the process is held to its CPUs, and what others take of them is noticed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MUCH = 0.05
"""Share of the CPUs taken by others, above which a row says so."""


def pin(threads: int) -> tuple[int, ...]:
    """Holds this process, and what threads it starts, to so many CPUs; empty if that can't be done.

    One of each core comes first, so that two threads share no core while another is free.
    """
    if not hasattr(os, "sched_setaffinity"):
        return ()
    chosen = apart(sorted(os.sched_getaffinity(0)), _siblings)[:threads]
    os.sched_setaffinity(0, chosen)
    return tuple(sorted(chosen))


def apart(cpus: list[int], siblings: Callable[[int], object]) -> list[int]:
    """CPUs in an order in which the first are of different cores.

    siblings: from a CPU to whatever names its core.
    """
    seen: dict[object, list[int]] = {}
    for cpu in cpus:
        seen.setdefault(siblings(cpu), []).append(cpu)
    rows = list(seen.values())
    most = max((len(row) for row in rows), default=0)
    return [row[i] for i in range(most) for row in rows if i < len(row)]


def _siblings(cpu: int) -> str:
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    try:
        return path.read_text()
    except OSError:
        return str(cpu)


@dataclass(frozen=True)
class Used:
    """Seconds that CPUs were busy, that this process ran, and the time of it."""

    busy: float
    own: float
    at: float


def used(cpus: tuple[int, ...]) -> Used | None:
    """What is known now; None where the system does not tell."""
    try:
        text = Path("/proc/stat").read_text()
    except OSError:
        return None
    found = os.times()
    own = found.user + found.system + found.children_user + found.children_system
    ticks = busy(text, cpus)
    if ticks is None:
        return None
    return Used(ticks / os.sysconf("SC_CLK_TCK"), own, time.monotonic())


IDLE = (3, 4)
"""Columns of /proc/stat that are no work: idle and waiting for input (proc(5))."""
COUNTED = 8
"""user, nice, system, idle, iowait, irq, softirq, steal; guest time is within user time."""


def busy(text: str, cpus: tuple[int, ...]) -> int | None:
    """Ticks that these CPUs were busy, of the text of /proc/stat; None if one is not in it."""
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line[:3] == "cpu"}
    total = 0
    for cpu in cpus:
        fields = lines.get(f"cpu{cpu}")
        if fields is None:
            return None
        total += sum(int(x) for i, x in enumerate(fields[:COUNTED]) if i not in IDLE)
    return total


def others(before: Used | None, after: Used | None, cpus: int) -> float | None:
    """Share of the CPUs' time that others took between; None where it is not known."""
    if before is None or after is None or not cpus or after.at <= before.at:
        return None
    taken = (after.busy - before.busy) - (after.own - before.own)
    return max(0.0, taken / (cpus * (after.at - before.at)))


def interruptions() -> int:
    """How often this process was put aside for another although it had work to do."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
