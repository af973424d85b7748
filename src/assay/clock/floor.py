"""How fast a call could be at most: the floor, which is generous, and the share of a ceiling, which
is measured and strict.

t_floor = max(DRAM bytes / bandwidth, FLOP / rate of the precision class, empty window), with the
data sheet's bandwidth and the peak at the highest clock. The share sets the same call against
kernels that only read, write, copy or multiply, measured on this machine by `assay roofs`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from .. import hardware
from ..types import GPU, Floor, Roof, Roofs, Share

GENEROUS = 1.25
"""Where no data sheet says, bandwidth is this much more than the copy rate of the same schedule:
reads alone run 4 to 8 % above it."""
WRONG = 1.03
"""A share above this is no speed: the ceiling or the count is wrong. 100 to 103 % happens."""
LAUNCH = "empty launch"
MIXED = (0.25, 0.75)
"""Share of writes in the traffic below which it is reading, and above which it is writing."""


@dataclass(frozen=True)
class Work:
    """What one call must do at least."""

    bytes: int | None
    """Read and written."""
    written: int
    """Of these, what is written."""
    flops: int | None
    kind: str
    """Class of arithmetic: `float32`, `tf32`, `bfloat16`, `float16`, `float8`, ...; or empty."""

    def dram_bytes(self, cache_bytes: int | None, *, cold: bool) -> int | None:
        """Bytes that DRAM must move: hot, what exceeds the cache; cold, all reads, and what of the
        writes the cache can't still hold at the end. None where bytes or cache are not known.
        """
        if self.bytes is None or cache_bytes is None:
            return None
        if not cold:
            return max(0, self.bytes - cache_bytes)
        written = min(self.bytes, self.written)
        return self.bytes - written + max(0, written - cache_bytes)


def kind_of(precision: str, dtype: str) -> str:
    """The class of arithmetic of a row: what it declares, else the case's dtype."""
    found = precision or dtype
    return "float8" if found.startswith("float8") else found


def floor(
    work: Work,
    gpu: GPU | None,
    *,
    cold: bool,
    copy_rate: float | None,
    null_seconds: float | None,
) -> Floor | None:
    """The least time of a call on a GPU; None on a CPU, of which no data sheet says enough.

    copy_rate: of the same schedule, in bytes a second; stands in for a data sheet.
    """
    if gpu is None:
        return None
    found = []
    moved = work.dram_bytes(gpu.l2_bytes, cold=cold)
    _, rate, _ = hardware.dram_rates(gpu.name, gpu.memory_hz, gpu.bus_bits)
    rate = rate or (GENEROUS * copy_rate if copy_rate else None)
    if moved and rate:
        found.append((moved / rate, f"moving {moved:,} bytes at {rate / 1e9:,.0f} GB/s"))
    peak = hardware.generous_flop_rate(work.kind, gpu.capability, gpu.multiprocessors, gpu.sm_hz)
    if work.flops and peak:
        said = f"{work.flops:,} FLOP of {work.kind} at {peak / 1e12:,.0f} TFLOP/s"
        found.append((work.flops / peak, said))
    if null_seconds:
        found.append((null_seconds, "an empty window"))
    if not found:
        return None
    seconds, by = max(found)
    return Floor(seconds=seconds, by=by, bytes=moved)


def share(work: Work, seconds: float, cache: str, roofs: Roofs) -> Share | None:
    """How much of the ceiling that binds is reached; None where none of this size was measured.

    Traffic is set against reading, writing or copying (whichever its mix is nearest to) of the
    same size, in the same state of the cache; arithmetic against the rate of its class.
    """
    found = [(r.value, r.name) for r in roofs.roofs if r.name == LAUNCH]
    if work.bytes:
        kind = traffic(work)
        alike = [r for r in roofs.roofs if r.name == kind and r.cache == cache]
        taken = at_size(alike, work.bytes)
        if not alike or (taken is None and not found):
            return None  # of what is smaller than all that was measured, a launch is the most
        found += [(taken, kind)] if taken is not None else []
    names = (f"{work.kind} FMA", f"{work.kind} matrix")
    rates = [(r.value, r.name) for r in roofs.roofs if r.name in names]
    if work.flops and rates:
        rate, name = max(rates)
        found.append((work.flops / rate, name))
    if not found:
        return None
    least, of = max(found)
    return Share(value=least / seconds, of=of, roofs=roofs.id)


def traffic(work: Work) -> str:
    """`read`, `write` or `copy`: what is nearest to this mix."""
    part = min(1.0, work.written / work.bytes) if work.bytes else 0.0
    low, high = MIXED
    return "read" if part < low else "write" if part > high else "copy"


def at_size(roofs: Sequence[Roof], size: int) -> float | None:
    """Seconds of the ceiling at a size, on the line between two that were measured.

    Above the largest, its rate; below the smallest, None.
    """
    points = sorted((r.bytes, r.seconds) for r in roofs if r.bytes is not None)
    if not points or size < points[0][0]:
        return None
    largest, longest = points[-1]
    if size >= largest:
        return longest * size / largest
    for (small, short), (large, long) in itertools.pairwise(points):
        if size <= large:
            return short + (long - short) * (size - small) / (large - small)
    raise AssertionError(f"{size} lies between no two of {points}")
