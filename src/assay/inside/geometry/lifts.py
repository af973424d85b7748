"""What would let more warps be resident: fewer registers, less shared memory, another block size.

Each is tried by the occupancy arithmetic itself, everything else held fixed. Whether more warps
make a kernel faster is another question: only where it waits for latency.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .limits import REGISTER_UNIT, REGISTERS, SCHEDULERS, WARP, Multiprocessor
from .occupancy import MOST, MOST_THREADS, Footprint, Occupancy, occupancy


@dataclass(frozen=True)
class Lift:
    """One change, and the occupancy that it allows."""

    change: str
    taken: Footprint
    fraction: float
    blocks: int


def best_block(taken: Footprint, sm: Multiprocessor) -> int:
    """The largest block size of whole warps with the highest occupancy; 0: none can be launched.

    Registers of a thread and shared memory of a block stay; as cuda_occupancy.h's
    cudaOccMaxPotentialOccupancyBlockSize chooses, with shared memory set to the most.
    """
    sizes = range(MOST_THREADS, 0, -WARP)
    return (
        max(sizes, key=lambda n: (_warps(replace(taken, threads=n), sm), n))
        if any(_warps(replace(taken, threads=n), sm) for n in sizes)
        else 0
    )


def lifts(taken: Footprint, sm: Multiprocessor) -> tuple[Lift, ...]:
    """Changes after which more warps can be resident, the highest occupancy first.

    Shared memory is set to the most there is: the driver gives what a kernel needs of it.
    """
    now = occupancy(taken, sm, MOST)
    if now.warps == now.most_warps:
        return ()
    found = [_one_more(taken, sm, now), _other_block(taken, sm)]
    better = [lift for lift in found if lift and lift.fraction > now.fraction]
    return tuple(sorted(better, key=lambda lift: -lift.fraction))


def _warps(taken: Footprint, sm: Multiprocessor) -> int:
    return occupancy(taken, sm, MOST).warps


def _lift(change: str, taken: Footprint, sm: Multiprocessor) -> Lift:
    found = occupancy(taken, sm, MOST)
    return Lift(change, taken, found.fraction, found.blocks)


def _one_more(taken: Footprint, sm: Multiprocessor, now: Occupancy) -> Lift | None:
    """One more block of the same size: every resource that stands against it cut to what it may be.

    None where warps, blocks or barriers stand against it: that is the block size's business.
    """
    wanted, changes, made = now.blocks + 1, [], taken
    if not {"registers", "shared memory"} >= set(now.limiters):
        return None
    if "registers" in now.limiters:
        made = replace(made, registers=_registers(taken, wanted))
        changes.append(f"{made.registers} registers a thread or fewer")
    if "shared memory" in now.limiters:
        room = sm.shared_bytes // wanted // sm.shared_unit * sm.shared_unit - sm.reserved_bytes
        if room < 0:
            return None
        dynamic = min(taken.dynamic_shared_bytes, room)
        static = min(taken.static_shared_bytes, room - dynamic)
        made = replace(made, dynamic_shared_bytes=dynamic, static_shared_bytes=static)
        changes.append(f"{room:,} bytes of shared memory a block or fewer")
    return _lift(" and ".join(changes), made, sm)


def _registers(taken: Footprint, blocks: int) -> int:
    """Most registers of a thread with which this many blocks fit.

    blocks x warps of a block, rounded up to whole quarters, share the registers of a scheduler.
    """
    warps = -(-blocks * taken.warps // SCHEDULERS)
    per_warp = REGISTERS // SCHEDULERS // warps // REGISTER_UNIT * REGISTER_UNIT
    return per_warp // WARP


def _other_block(taken: Footprint, sm: Multiprocessor) -> Lift | None:
    """The block size with the highest occupancy; of equal ones the nearest to what it is."""
    sizes = [n for n in range(WARP, MOST_THREADS + 1, WARP)]
    warps = {n: _warps(replace(taken, threads=n), sm) for n in sizes}
    most = max(warps.values())
    if not most:
        return None
    size = min((n for n in sizes if warps[n] == most), key=lambda n: abs(n - taken.threads))
    held = ", the same shared memory a block" if taken.shared_bytes else ""
    return _lift(f"blocks of {size} threads{held}", replace(taken, threads=size), sm)
