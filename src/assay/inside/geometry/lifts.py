"""What would let more warps be resident: fewer registers, less shared memory, another block size.

Each is tried by the occupancy arithmetic itself, everything else held fixed. Whether more warps
make a kernel faster is another question: only where it waits for latency.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .limits import REGISTER_UNIT, REGISTERS, SCHEDULERS, WARP, Multiprocessor
from .occupancy import MOST, MOST_THREADS, PREDICTED, Footprint, Occupancy, occupancy


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
    warps = _by_size(taken, sm)
    best = max(warps, key=lambda size: (warps[size], size))
    return best if warps[best] else 0


def lifts(
    taken: Footprint, sm: Multiprocessor, carveout: int | str = PREDICTED
) -> tuple[Lift, ...]:
    """Changes after which more warps can be resident, the highest occupancy first.

    Each is tried with shared memory set to the most there is: the driver gives what a kernel needs
    of it. Where that alone helps, a smaller size having been given, it is a change itself.
    """
    now, most = occupancy(taken, sm, carveout), occupancy(taken, sm, MOST)
    if now.warps == now.most_warps:
        return ()
    size = f"shared memory set to {sm.shared_bytes:,} bytes"
    found = [
        Lift(size, taken, most.fraction, most.blocks),
        _one_more(taken, sm, most),
        _other_block(taken, sm),
    ]
    better = [lift for lift in found if lift and lift.fraction > now.fraction]
    return tuple(sorted(better, key=lambda lift: -lift.fraction))


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
    warps = _by_size(taken, sm)
    most = max(warps.values())
    if not most:
        return None
    size = min((n for n in warps if warps[n] == most), key=lambda n: abs(n - taken.threads))
    held = ", the same shared memory a block" if taken.shared_bytes else ""
    return _lift(f"blocks of {size} threads{held}", replace(taken, threads=size), sm)


def _by_size(taken: Footprint, sm: Multiprocessor) -> dict[int, int]:
    """Warps that can be resident, by the threads of a block of whole warps."""
    sizes = range(WARP, MOST_THREADS + 1, WARP)
    return {n: occupancy(replace(taken, threads=n), sm, MOST).warps for n in sizes}
