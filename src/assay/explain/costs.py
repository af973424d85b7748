"""A model of time: what each part of a GPU takes for a call by itself; the longest one decides.

    t = max(DRAM, L2, shared memory x last, instructions x last, latency x tail, atomics, blocks,
            launches)

These are ceilings. A cause is a switch in it: `without` names causes that are taken away. What is
left then, as a clock would show it, `reached` says. The rates are the card's.

    DRAM          bytes that must move / its rate; what further kernels of a chain move again
                  as well, at L2's rate where it holds all of it
    L2            32 bytes x (global sectors + sectors of spills) / its rate
    shared memory one pass a cycle and multiprocessor (Nsight Compute: wavefront)
    instructions  cycles of the busiest pipe, or of four schedulers, over all multiprocessors in use
    latency       loads from global memory in series: LATENCY_CYCLES each, as many at a time as
                  the code has loads
    atomics       on one address: one lane a cycle, wherever they come from
    blocks        that the whole GPU starts: one a cycle
    tail, last    waves begun over waves of work; blocks of the busiest multiprocessor over the mean
    host          of `eager` code: dispatching every operator, and waiting where it asks for values
"""

from __future__ import annotations

from collections.abc import Collection

from .model import Facts, Launch

UNCOALESCED, CONFLICTS, DIVERGENCE = "uncoalesced access", "bank conflicts", "divergence"
FP64, SPILLS, ATOMICS = "fp64 instructions", "spills", "atomics on one address"
TAIL, GRID, OCCUPANCY = "tail", "tiny grid", "low occupancy"
FLIGHT, WORK = "few bytes in flight", "too little work per block"
CHAIN, LAUNCHES, HOST = "unfused chain", "launches", "waits of the host"
LATENCY_CYCLES = 600
"""From global memory under little load: about 0.3 us on A100 and H100; an estimate."""
MOST_FLIGHT = 16
"""Loads of a warp on their way at a time: as many as its code has, at most these; an estimate."""
STARTS = "starting blocks"
"""The name of that part."""
SECTOR = 32
BLOCKS_A_CLOCK = 1.0
"""That a GPU starts, one dispatcher for all multiprocessors: an estimate. 262,144 blocks of 64
threads were seen to take 179 us on an H100, which is 0.74."""
OPERATOR_SECONDS, WAIT_SECONDS = 5e-6, 10e-6
"""Of the host, for dispatching one operator of torch and for one `.item()`: estimates."""
LANES = {
    # lanes a clock and multiprocessor: CUDA C++ Programming Guide, throughput of instructions
    75: {"fp32": 64, "fp64": 2, "integer": 64, "special": 16, "convert": 16, "fp16": 128},
    80: {"fp32": 64, "fp64": 32, "integer": 64, "special": 16, "convert": 16, "fp16": 256},
    86: {"fp32": 128, "fp64": 2, "integer": 64, "special": 16, "convert": 16, "fp16": 256},
    89: {"fp32": 128, "fp64": 2, "integer": 64, "special": 16, "convert": 16, "fp16": 128},
    90: {"fp32": 128, "fp64": 64, "integer": 64, "special": 16, "convert": 64, "fp16": 256},
    100: {"fp32": 128, "fp64": 64, "integer": 64, "special": 16, "convert": 64, "fp16": 256},
    120: {"fp32": 128, "fp64": 2, "integer": 128, "special": 16, "convert": 16, "fp16": 128},
}
SCHEDULERS = 4
MEMORY = ("DRAM", "L2")


def costs(facts: Facts, without: Collection[str] = ()) -> dict[str, float]:
    """Seconds of each part that can be told from the facts; `launches` is always among them."""
    found = {"launches": _launch_seconds(facts, without)}
    if facts.operators:
        found["host"] = _host_seconds(facts, without)
    moved = _dram(facts, without)
    if moved is not None:
        found["DRAM"] = moved
    if facts.counts is not None:
        found |= _counted(facts, without)
    return found


def seconds(facts: Facts, without: Collection[str] = ()) -> float:
    """What a call takes by the model."""
    return max(costs(facts, without).values())


def deciding(facts: Facts, without: Collection[str] = ()) -> str:
    """The part that takes longest."""
    found = costs(facts, without)
    return max(found, key=lambda name: found[name])


def kernels(facts: Facts) -> int:
    """Launches of a call."""
    return sum(launch.times for launch in facts.launches) or len(facts.operators) or 1


def _launch_seconds(facts: Facts, without: Collection[str]) -> float:
    number = 1 if without and {CHAIN, LAUNCHES, HOST} & set(without) else kernels(facts)
    return number * facts.card.launch_seconds


def _host_seconds(facts: Facts, without: Collection[str]) -> float:
    """What Python and torch take to dispatch the operators of a call, and to wait for values."""
    waits = sum(one.waits for one in facts.operators)
    if without and {CHAIN, LAUNCHES, HOST} & set(without):
        return OPERATOR_SECONDS
    return OPERATOR_SECONDS * len(facts.operators) + WAIT_SECONDS * waits


def _dram(facts: Facts, without: Collection[str]) -> float | None:
    must = facts.must_bytes
    if must is None:
        return None
    extra = 0 if CHAIN in without or kernels(facts) == 1 else max(0, chained(facts) - must)
    again = facts.card.l2 if must + extra <= facts.card.l2_bytes else facts.card.dram
    return must / facts.card.dram + extra / again


def chained(facts: Facts) -> int:
    """Bytes that all kernels of a call move, each its own operands once."""
    if facts.operators:
        return sum(one.bytes for one in facts.operators)
    return facts.moved_bytes or 0


def _counted(facts: Facts, without: Collection[str]) -> dict[str, float]:
    counts, card = facts.counts, facts.card
    assert counts is not None
    parts = {k: counts.access(k) for k in counts.kinds}
    wide = [a for k, a in parts.items() if k.split()[0] in ("global", "generic")]
    local = 0 if SPILLS in without else sum(a.sectors for k, a in parts.items() if "local" in k)
    sectors = sum(a.ideal_sectors if UNCOALESCED in without else a.sectors for a in wide)
    spilled = 0.0 if SPILLS in without else spill_bytes(facts)
    passes = sum(
        a.ideal_wavefronts if CONFLICTS in without else a.wavefronts for a in parts.values()
    )
    lanes = sum(a.contended for a in parts.values())
    tail, last = (1.0, 1.0) if TAIL in without else (tail_factor(facts), uneven(facts))
    used = card.multiprocessors if GRID in without else used_multiprocessors(facts)
    cycle = 1 / card.clock_hz
    busy = _cycles(facts, without)
    found = {
        "L2": (SECTOR * (sectors + local) + spilled) / card.l2,
        "instructions": busy * cycle / used * last,
        "latency": _latency(facts, without, _loads(facts)) * tail,
    }
    if CHAIN in without and facts.must_bytes and chained(facts):
        fused = min(1.0, facts.must_bytes / chained(facts))  # one kernel asks for so much less
        found["L2"], found["latency"] = fused * found["L2"], fused * found["latency"]
    if facts.launches:
        found[STARTS] = _started(facts, without) * cycle / BLOCKS_A_CLOCK
    if passes:
        found["shared memory"] = passes * cycle / used * last
    if lanes and ATOMICS not in without:
        found["atomics"] = lanes * cycle
    return found


def _started(facts: Facts, without: Collection[str]) -> float:
    """Blocks of a call; with more work each, as many as the GPU holds at a time."""
    each = [(one, float(one.geometry.blocks)) for one in facts.launches]
    if WORK in without:
        each = [
            (one, min(n, float(one.geometry.waves.per_wave)) if one.geometry.waves else n)
            for one, n in each
        ]
    total = sum(one.times * n for one, n in each)
    if CHAIN in without:
        total /= kernels(facts)
    return total


def spill_bytes(facts: Facts) -> float:
    """All threads' spills, each counted once: at least so many."""
    return float(sum(one.spill_bytes * one.times * one.geometry.threads for one in facts.launches))


def _cycles(facts: Facts, without: Collection[str]) -> float:
    """Cycles that the busiest pipe of one multiprocessor would need for all that was counted."""
    assert facts.counts is not None
    lanes = LANES[max(n for n in LANES if n <= facts.card.number)]
    classes = dict(facts.counts.classes)
    if FP64 in without:
        classes["fp32"] = classes.get("fp32", 0) + classes.pop("fp64", 0)
        classes.pop("convert", 0)
    pipes = [32 * number / lanes[name] for name, number in classes.items() if name in lanes]
    issued = sum(classes.values()) / SCHEDULERS
    full = facts.counts.active_lanes / 32 if DIVERGENCE in without else 1.0
    return max([issued, *pipes]) * full


def used_multiprocessors(facts: Facts) -> float:
    """Of the launch with most blocks."""
    blocks = [one.geometry.blocks for one in facts.launches]
    return min(facts.card.multiprocessors, max(blocks, default=facts.card.multiprocessors))


def tail_factor(facts: Facts) -> float:
    """Waves begun over waves of work, of the launch with most threads; 1 below one wave.

    For what waits: a block takes as long in the last wave as in the first.
    """
    found = largest(facts)
    waves = found.geometry.waves if found else None
    return -(-waves.blocks // waves.per_wave) / waves.number if waves and waves.full else 1.0


def uneven(facts: Facts) -> float:
    """Blocks of the busiest multiprocessor over those of all on average; 1 below one wave.

    For what keeps a multiprocessor busy: the fewer blocks it holds, the faster each of them runs.
    """
    found = largest(facts)
    waves = found.geometry.waves if found else None
    each = waves.blocks / facts.card.multiprocessors if waves and waves.full else 0.0
    return -int(-each // 1) / each if each else 1.0


def largest(facts: Facts) -> Launch | None:
    """The launch with most threads."""
    return max(facts.launches, key=lambda one: one.geometry.threads, default=None)


def _latency(facts: Facts, without: Collection[str], requests: int) -> float:
    found = largest(facts)
    held = found.geometry.occupancy if found else None
    if found is None or held is None:
        return 0.0
    card, launch = facts.card, found.geometry
    warps = float(held.most_warps if OCCUPANCY in without or GRID in without else held.warps)
    resident = warps * card.multiprocessors
    if GRID not in without:
        resident = min(resident, float(launch.warps))
    waiting = requests * LATENCY_CYCLES / card.clock_hz
    flight = MOST_FLIGHT if FLIGHT in without else min(MOST_FLIGHT, max(1, facts.loads))
    return waiting / (resident * flight)


def _loads(facts: Facts) -> int:
    assert facts.counts is not None
    kinds = [k for k in facts.counts.kinds if k in ("global load", "generic load")]
    return sum(facts.counts.access(kind).requests for kind in kinds)
