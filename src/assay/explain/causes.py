"""The causes that are looked for: how each shows in the facts, and what to do about it.

Each function gives (evidence, confidence), or None where the facts do not show its cause.
"""

from __future__ import annotations

from collections.abc import Callable

from ..inside.geometry.behaviour import Traffic, behaviour
from . import costs
from .costs import (
    ATOMICS,
    CHAIN,
    CONFLICTS,
    DIVERGENCE,
    FLIGHT,
    FP64,
    GRID,
    HOST,
    LAUNCHES,
    OCCUPANCY,
    SPILLS,
    TAIL,
    UNCOALESCED,
    WORK,
)
from .model import COMPILER, COUNTED, Facts

Evidence = tuple[str, str] | None
LEAST_EXCESS = 1.1
"""Times the ideal from which accesses are called uncoalesced, or in conflict."""
FULL_LANES = 30.0
"""Of 32: below, lanes part ways, or have no thread."""


def uncoalesced(facts: Facts) -> Evidence:
    """Sectors of global memory beyond what the same bytes side by side would take."""
    found = [t for t in _traffic(facts) if t.used * LEAST_EXCESS < 1]
    if not found:
        return None
    worst = max(found, key=lambda t: t.excess)
    return (
        f"{worst.kind}s move {worst.sectors_a_request:.1f} sectors a request, "
        f"{worst.ideal_sectors_a_request:.1f} would do{_at(worst)}"
    ), COUNTED


def conflicts(facts: Facts) -> Evidence:
    """Passes of shared memory beyond one a request of 128 bytes."""
    found = [
        t
        for t in _traffic(facts)
        if t.access.wavefronts > LEAST_EXCESS * t.access.ideal_wavefronts
        and t.kind.startswith("shared")
    ]
    if not found:
        return None
    worst = max(found, key=lambda t: t.access.conflicts)
    ideal = worst.access.ideal_wavefronts / max(1, worst.access.requests)
    return (
        f"{worst.kind}s take {worst.passes_a_request:.1f} passes a request, {ideal:.1f} would do"
        f"{_at(worst)}"
    ), COUNTED


def divergence(facts: Facts) -> Evidence:
    """Instructions issued for fewer lanes than a warp has."""
    if facts.counts is None or facts.counts.active_lanes >= FULL_LANES:
        return None
    idle = [one.geometry.idle_lanes for one in facts.launches]
    padded = f"; {max(idle)} lanes of each block have no thread" if any(idle) else ""
    active = f"{facts.counts.active_lanes:.1f} of 32 lanes active, on average"
    return f"{active}{padded}", COUNTED


def fp64(facts: Facts) -> Evidence:
    """Arithmetic in float64 where no input is float64."""
    number = facts.counts.classes.get("fp64", 0) if facts.counts else 0
    if not number or "float64" in (facts.dtype, facts.precision):
        return None
    assert facts.counts is not None
    part = number / facts.counts.warp_instructions
    place = max(facts.counts.lines, key=lambda line: line.classes.get("fp64", 0))
    where = f", most at {place.file.rsplit('/', 1)[-1]}:{place.line}" if place.line else ""
    return (
        f"{number:,} float64 instructions of warps ({part:.0%}) on {facts.dtype or 'other'} data"
        f"{where}"
    ), COUNTED


def spills(facts: Facts) -> Evidence:
    """Registers kept in local memory by ptxas, or arrays that were never in registers."""
    spilled = [one for one in facts.launches if one.spill_bytes or one.stack_bytes]
    local = (
        sum(facts.counts.access(k).requests for k in facts.counts.kinds if k.startswith("local"))
        if facts.counts
        else 0
    )
    if not spilled and not local:
        return None
    if not spilled:
        return f"{local:,} requests to local memory: an array that is not in registers", COUNTED
    worst = max(spilled, key=lambda one: (one.spill_bytes, one.stack_bytes))
    held = worst.geometry.taken
    at = f" at {held.registers} registers a thread" if held else ""
    return (
        f"ptxas: {worst.spill_bytes:,} bytes of spills and a stack of {worst.stack_bytes:,} "
        f"bytes a thread{at}"
    ), COMPILER


def atomics(facts: Facts) -> Evidence:
    """Lanes of one warp that queue for the same address."""
    lanes = sum(facts.counts.access(k).contended for k in facts.counts.kinds) if facts.counts else 0
    if facts.counts is None or not lanes:
        return None
    requests = sum(facts.counts.access(k).requests for k in facts.counts.kinds if "atomic" in k)
    each = lanes / max(1, requests)
    return f"atomics: {lanes:,} rounds on one address, {each:.0f} a request", COUNTED


def tail(facts: Facts) -> Evidence:
    """A last wave that is not full."""
    found = costs.largest(facts)
    waves = found.geometry.waves if found else None
    if waves is None or not waves.full or not waves.partial:
        return None
    return (
        f"{waves.blocks:,} blocks, {waves.per_wave:,} at a time: {waves.number:.2f} waves, and "
        f"the last has {waves.partial:,} blocks"
    ), COMPILER


def grid(facts: Facts) -> Evidence:
    """Fewer blocks than the GPU holds at a time, though there is work for more."""
    found = costs.largest(facts)
    waves = found.geometry.waves if found else None
    if waves is None or waves.full:
        return None
    return (
        f"{waves.blocks:,} blocks; the {facts.card.multiprocessors} multiprocessors of the "
        f"{facts.card.name} hold {waves.per_wave:,} at a time"
    ), COMPILER


def occupancy(facts: Facts) -> Evidence:
    """Too few warps resident to hide latency; what limits them."""
    found = costs.largest(facts)
    held = found.geometry.occupancy if found else None
    if held is None or not held.limiters:
        return None
    return (
        f"{held.warps} of {held.most_warps} warps can be resident ({held.fraction:.0%}), limited "
        f"by {' and '.join(held.limiters)}"
    ), COMPILER


def flight(facts: Facts) -> Evidence:
    """Warps enough, but each waits for a load or two at a time: then width and unrolling help."""
    found = costs.largest(facts)
    if found is None or occupancy(facts) or grid(facts) or costs.deciding(facts) != "latency":
        return None
    return (
        f"{facts.loads:,} loads from global memory in the code, so a warp waits for so many at a "
        "time at most"
    ), COUNTED


def work(facts: Facts) -> Evidence:
    """So many blocks that starting them takes longer than what they do."""
    if costs.deciding(facts) != costs.STARTS:
        return None
    blocks = sum(one.times * one.geometry.blocks for one in facts.launches)
    found = costs.largest(facts)
    threads = found.geometry.block_threads if found else 0
    return f"{blocks:,} blocks of {threads:,} threads are started", COMPILER


def chain(facts: Facts) -> Evidence:
    """Several kernels that move more together than must move, the device being busy with that."""
    number, moved = costs.kernels(facts), costs.chained(facts)
    if number < 2 or not facts.must_bytes or moved <= facts.must_bytes or _small(facts):
        return None
    return (
        f"{number:,} kernels move {moved:,} bytes, {facts.must_bytes:,} must move "
        f"({moved / facts.must_bytes:.1f} times)"
    ), COUNTED


def launches(facts: Facts) -> Evidence:
    """Several kernels, each too short for what it takes to launch it."""
    number = costs.kernels(facts)
    if number < 2 or not _small(facts) or any(one.waits for one in facts.operators):
        return None
    what = "operators" if facts.operators else "kernels"
    return f"{number:,} {what} a call, each shorter than its launch", COUNTED


def host(facts: Facts) -> Evidence:
    """Values that the host asks for in the middle of a call."""
    waits = sum(one.waits for one in facts.operators)
    if not waits:
        return None
    return (
        f"the host waits for a value {waits:,} times a call, among {len(facts.operators):,} "
        "operators"
    ), COUNTED


def _small(facts: Facts) -> bool:
    """Whether launching takes longer than the work."""
    return costs.deciding(facts) in ("launches", "host")


def _traffic(facts: Facts) -> tuple[Traffic, ...]:
    return behaviour(facts.counts, facts.card.arch).traffic if facts.counts else ()


def _at(traffic: Traffic) -> str:
    return f", most at {traffic.worst}" if traffic.worst else ""


def lift(facts: Facts) -> str:
    """What would let more warps be resident, by the occupancy arithmetic."""
    found = costs.largest(facts)
    best = found.geometry.lifts[0] if found and found.geometry.lifts else None
    if best is None:
        return "use smaller blocks, or fewer registers or less shared memory a block"
    return f"{best.change}: {best.fraction:.0%} occupancy"


CAUSES: dict[str, tuple[Callable[[Facts], Evidence], str]] = {
    UNCOALESCED: (
        uncoalesced,
        "let neighbouring threads touch neighbouring addresses; where two layouts meet, go "
        "through a tile in shared memory",
    ),
    CONFLICTS: (conflicts, "pad the rows of the shared array by one element, or swizzle columns"),
    SPILLS: (
        spills,
        "give a thread more registers (smaller blocks, launch bounds that promise less) or less to "
        "hold; index arrays by constants only",
    ),
    DIVERGENCE: (
        divergence,
        "give the lanes of a warp the same branch: reorder the work so that a warp is of one kind",
    ),
    FP64: (fp64, "write constants with f, and call the float functions (expf, not exp)"),
    ATOMICS: (
        atomics,
        "add up in the warp (shuffles) and in the block (shared memory) first; one atomic a block",
    ),
    GRID: (grid, "launch more blocks: at least four a multiprocessor, each with less of the work"),
    OCCUPANCY: (occupancy, ""),
    FLIGHT: (flight, "load more at a time: wider types (float4), unrolled loops"),
    WORK: (
        work,
        "give a block more of the work: more elements a thread, larger blocks, or a grid that "
        "fills the GPU and strides over the rest",
    ),
    TAIL: (tail, "use smaller blocks, or a grid that fills whole waves and strides over the rest"),
    CHAIN: (chain, "fuse the kernels into one, so that what lies between stays in registers"),
    LAUNCHES: (launches, "fuse them, or capture the call in a CUDA graph"),
    HOST: (host, "keep values on the device: no .item() and no Python branch on data in a loop"),
}
"""How each cause is found, and what to do; the confidence of GRID, OCCUPANCY, WORK and TAIL is that
of ptxas' report and of arithmetic on it."""
