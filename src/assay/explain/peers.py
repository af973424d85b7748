"""Causes in what other tools measured: counters of Nsight Compute, timelines of traces."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from ..errors import AssayError
from ..inside.reading.ncu import Kernel
from ..inside.reading.recorded import geometry_of
from ..inside.reading.timeline import timeline
from ..inside.reading.trace import Trace
from .text import WIDTH, micro

PERCENT = "avg.pct_of_peak_sustained_"
FIGURES = {
    "compute": ("Compute (SM) Throughput", f"sm__throughput.{PERCENT}elapsed"),
    "memory": ("Memory Throughput", f"gpu__compute_memory_throughput.{PERCENT}elapsed"),
    "DRAM": ("DRAM Throughput", f"gpu__dram_throughput.{PERCENT}elapsed"),
    "occupancy": ("Achieved Occupancy", f"sm__warps_active.{PERCENT}active"),
}
HIGH, LOW = 60.0, 60.0
"""Percent of a peak above which a unit decides, and below which neither does: NVIDIA's own rule
(Speed of Light section of Nsight Compute)."""
CEILING = 80.0
"""Above, a unit is as busy as kernels get."""
LONG_SCOREBOARD = re.compile(r"long scoreboard|scoreboard dependency on an? L1TEX", re.IGNORECASE)
"""How ncu's rule on stalls names waiting for global and local memory."""
MANY = 20
"""Launches from which short ones are called a chain."""


def of_kernel(kernel: Kernel) -> Iterator[str]:
    """What counters say: which unit decides, then what its launch and the tool's rules add."""
    value = {name: figure(kernel, name) for name in FIGURES}
    compute, memory = value["compute"], value["memory"]
    if compute is None or memory is None:
        yield "  not known: the file has no Speed Of Light section (ncu --set full records it)"
    else:
        yield from _wrap(_bound(compute, memory, value["DRAM"]))
        if max(compute, memory) >= CEILING:
            return  # advice on what is not in the way would be wrong
    yield from _stalls(kernel)
    yield from _launch(kernel)
    for rule in kernel.findings:
        if rule.speedup_percent and rule.speedup_kind == "global":
            gain = _gain(rule.speedup_percent)
            yield from _wrap(f"{rule.rule or rule.section}: {gain} (ncu's rule, estimated)")


def _stalls(kernel: Kernel) -> Iterator[str]:
    """The rule on warps that wait for memory: what is known to help, in the order of ease."""
    for rule in kernel.findings:
        if LONG_SCOREBOARD.search(rule.text):
            yield from _wrap(
                "long scoreboard: warps wait for global or local memory (measured by ncu); "
                "coalesce accesses, keep what is used again in shared memory, have more bytes on "
                "their way (wider loads, unrolled loops, more warps)"
            )
            return


def figure(kernel: Kernel, name: str) -> float | None:
    """One of FIGURES, in percent; None where the file has it not."""
    return next((v for v in map(kernel.value, FIGURES[name]) if v is not None), None)


def _bound(compute: float, memory: float, dram: float | None) -> str:
    said = f"compute {compute:.1f} %, memory {memory:.1f} % of their peaks (measured by ncu)"
    most = max(compute, memory)
    if most < LOW:
        return f"latency decides: neither unit is busy; {said}"
    who = "compute" if compute >= memory else "memory"
    where = ""
    if who == "memory" and dram is not None:
        where = ", in DRAM" if dram >= 0.8 * memory else f", in caches (DRAM {dram:.1f} %)"
    rest = "; nothing left to gain but less of it" if most >= CEILING else ""
    return f"{who} decides{where}: {said}{rest}"


def _launch(kernel: Kernel) -> Iterator[str]:
    try:
        found = geometry_of(kernel)
    except AssayError as error:
        yield from _wrap(f"not known: occupancy ({error})")
        return
    held, waves = found.occupancy, found.waves
    if held is not None and held.limiters and held.fraction < 0.5:
        lift = f"; {found.lifts[0].change}: {found.lifts[0].fraction:.0%}" if found.lifts else ""
        yield from _wrap(
            f"low occupancy: {held.fraction:.2%}, limited by {' and '.join(held.limiters)}{lift} "
            "(from the compiler)"
        )
    if waves is not None and not waves.full:
        yield from _wrap(f"tiny grid: {waves.blocks:,} blocks, {waves.per_wave:,} fit at a time")
    elif waves is not None and waves.tail_most >= 0.1 and waves.idle >= 0.1:
        yield from _wrap(
            f"tail: {waves.number:.2f} waves, the last has {waves.partial:,} of {waves.per_wave:,} "
            f"blocks; at most {waves.tail_most:.0%} of the time (estimated)"
        )


def _gain(percent: float) -> str:
    """A rule's estimate is the share of time that goes: 50 % is twice as fast."""
    return "all of the time" if percent >= 100 else f"{100 / (100 - percent):.2f} times faster"


def of_trace(trace: Trace) -> Iterator[str]:
    """Who waits for whom, as findings."""
    found = timeline(trace)
    if not found.bound:
        yield from _wrap("not known: no work of a GPU was recorded, so nothing is said of one")
        return
    idle = found.seconds - found.busy_seconds
    if found.bound == "device":
        yield from _wrap(
            f"the device decides: busy {found.busy:.1%} of the time (measured); explain its kernels"
        )
    else:
        gain = found.seconds / found.busy_seconds
        yield from _wrap(
            f"host-bound: the device is idle for {micro(idle)} of {micro(found.seconds)}; "
            f"without that, {gain:.1f} times faster at most (measured)"
        )
    for wait in (w for w in found.waits if w.implied):
        yield from _wrap(
            f"waits of the host: {wait.name} {wait.calls:,} times, implied by an operator "
            f"(.item(), a print of a tensor), {micro(wait.seconds)} (measured)"
        )
    if found.launches >= MANY and found.bound != "device":
        each = found.busy_seconds / found.launches
        yield from _wrap(
            f"launches: {found.launches:,}, {micro(each)} of work each (measured): fuse them or "
            "capture a CUDA graph"
        )


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
