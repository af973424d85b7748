"""What good kernels reach: the time that is left without a cause, as a clock would show it.

    t = kernels x START + max(blocks, sqrt(memory^2 + instructions^2 + shared memory^2 + latency^2))

`costs` has ceilings, which no kernel reaches: what a GPU could do at the same time overlaps in part
only. With parts as the root of their sum of squares, one that is twice another is held up by 12 %,
and two equal ones by 41 %. memory is the longer of DRAM and L2, through which the same bytes pass.
latency has what a block's slot stands empty between two blocks. Atomics, launches and the host are
the longest of these and t, as in `costs`.

Every constant is an estimate from an H100 80GB HBM3 (2026-11-28): from kernels of tests/slow, none
of which is in tests/slow/unseen, and one from operators of torch. What they come to, `python -m
benchmarks.explain_planted --again FILE --counts FILE` shows.
"""

from __future__ import annotations

from collections.abc import Collection
from math import hypot

from . import costs
from .costs import CHAIN, GRID, LATENCY_CYCLES, OCCUPANCY, STARTS, TAIL, WORK
from .model import Facts, Launch

START_SECONDS = 1.4e-6
"""Of one kernel from its first start to its last end, whatever it does: `small_chain cuda/twin`,
4,096 elements, took 1.38 us."""
LOAD_CYCLES = 740
"""From one load of a thread to its next one, DRAM under little load: `negate cuda/slow`, 16,384
loads in series in 6.11 ms."""
TURN_CYCLES = 490
"""A block's slot, from its last instruction to the first one of the block after it: `gather
cuda/slow`, one block at a time a multiprocessor, took 0.62 us a block, of which a load is 0.37."""
BLOCK_CLOCKS = 1.33
"""Clocks a block that is started, of the whole GPU: `gather` with 32 blocks resident, 262,144 in
179 us."""
ATOMIC_CLOCKS = 3.5
"""Clocks a lane that adds to one address: `total cuda/slow`, 16,777,216 in 29.5 ms."""
ONE_CALL_SECONDS = 11e-6
"""What a user waits at least for a call of one small kernel from Python: 7 us to queue an operator
of torch, the kernel, and the synchronize behind it (a quiet H100 host)."""


def seconds(facts: Facts, without: Collection[str] = ()) -> float:
    """What a call takes; without: causes that are taken away."""
    parts = costs.costs(facts, without)
    number = 1 if CHAIN in without or costs.LAUNCHES in without else costs.kernels(facts)
    memory = max(parts.get("DRAM", 0.0), parts.get("L2", 0.0))
    waiting = parts.get("latency", 0.0) * LOAD_CYCLES / LATENCY_CYCLES
    waiting += turning(facts, without)
    busy = hypot(memory, parts.get("instructions", 0.0), parts.get("shared memory", 0.0), waiting)
    started = parts.get(STARTS, 0.0) * BLOCK_CLOCKS * costs.BLOCKS_A_CLOCK
    if OCCUPANCY in without:
        started *= merged(facts)
    device = number * START_SECONDS + max(busy, started)
    queued = parts["launches"] if number > 1 else 0.0
    atomics = parts.get("atomics", 0.0) * ATOMIC_CLOCKS
    return max(device, atomics, queued, parts.get("host", 0.0))


def merged(facts: Facts) -> float:
    """Blocks left of each where the advice is to make larger ones, for more of them resident."""
    found = costs.largest(facts)
    taken = found.geometry.taken if found else None
    if found is None or taken is None or not found.geometry.lifts:
        return 1.0
    return min(1.0, taken.threads / found.geometry.lifts[0].taken.threads)


def starting(facts: Facts) -> float:
    """What its blocks take that do nothing but start."""
    blocks = costs.costs(facts).get(STARTS, 0.0) * BLOCK_CLOCKS * costs.BLOCKS_A_CLOCK
    return costs.kernels(facts) * START_SECONDS + blocks


def turning(facts: Facts, without: Collection[str] = ()) -> float:
    """Seconds that slots stand empty between blocks, of all launches."""
    if WORK in without or GRID in without:
        return 0.0
    cycle = 1 / facts.card.clock_hz
    turns = sum(one.times * max(0.0, _waves(one, without) - 1) for one in facts.launches)
    if CHAIN in without:
        turns /= costs.kernels(facts)
    return turns * TURN_CYCLES * cycle


def _waves(one: Launch, without: Collection[str]) -> float:
    waves, held = one.geometry.waves, one.geometry.occupancy
    if waves is None or held is None:
        return 0.0
    if OCCUPANCY in without:
        return waves.number * held.warps / held.most_warps
    return waves.number if TAIL in without else -(-waves.blocks // waves.per_wave)
