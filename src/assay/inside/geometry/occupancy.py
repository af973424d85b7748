"""How many blocks a multiprocessor can hold at a time, and what limits them.

The arithmetic is that of NVIDIA's `cuda_occupancy.h` (CUDA 13), for what one block takes. It is a
limit by resources: what a kernel reaches depends on its grid and on how even its blocks are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import AssayError
from .limits import (
    REGISTER_UNIT,
    REGISTERS,
    REGISTERS_A_THREAD,
    SCHEDULERS,
    WARP,
    Multiprocessor,
)

MOST_THREADS = 1024
GIVEN, MOST, PREDICTED = "given", "most", "predicted"


@dataclass(frozen=True)
class Footprint:
    """What one block takes of its multiprocessor. Shared memory in bytes, without the driver's."""

    threads: int
    registers: int
    """32-bit registers of each thread."""
    static_shared_bytes: int = 0
    dynamic_shared_bytes: int = 0
    barriers: int = 0
    """Block barriers that it uses, as ptxas reports them."""

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise AssayError(f"a block of {self.threads} threads: it has at least one")
        for name in ("registers", "static_shared_bytes", "dynamic_shared_bytes", "barriers"):
            if getattr(self, name) < 0:
                raise AssayError(f"{name} = {getattr(self, name)}: it can't be negative")

    @property
    def warps(self) -> int:
        """Of a block; the last one may be partial."""
        return -(-self.threads // WARP)

    @property
    def shared_bytes(self) -> int:
        """Static and dynamic."""
        return self.static_shared_bytes + self.dynamic_shared_bytes


@dataclass(frozen=True)
class Occupancy:
    """What one multiprocessor holds."""

    limits: Mapping[str, int | None]
    """Blocks at most, by `registers`, `shared memory`, `warps`, `blocks`, `barriers`; None: no
    limit."""
    blocks: int
    """The least of them; 0: the kernel can't be launched so."""
    warps: int
    most_warps: int
    carveout_bytes: int
    """What shared memory is set to."""
    carveout: str
    """Where that is from: given, most (what there is), predicted."""
    registers: int
    """Handed out to a block."""
    shared_bytes: int
    """Handed out to a block, with what the driver reserves."""

    @property
    def fraction(self) -> float:
        """Theoretical occupancy: warps that can be resident over those that the hardware has."""
        return self.warps / self.most_warps

    @property
    def limiters(self) -> tuple[str, ...]:
        """What allows no more blocks; empty where every warp can be resident."""
        if self.warps == self.most_warps:
            return ()
        return tuple(name for name, most in self.limits.items() if most == self.blocks)

    @property
    def scheduler_warps(self) -> float:
        """Warps that each of the four schedulers chooses from, at most."""
        return self.warps / SCHEDULERS

    @property
    def most_scheduler_warps(self) -> int:
        return self.most_warps // SCHEDULERS


def occupancy(taken: Footprint, sm: Multiprocessor, carveout: int | str = PREDICTED) -> Occupancy:
    """What a multiprocessor holds of blocks that take this much.

    carveout: what its shared memory is set to. `most`: all there is, as cuda_occupancy.h assumes.
    A number of bytes: rounded up to a size that there is, and to what one block needs. `predicted`:
    the smallest size that holds as many blocks as every other limit allows, what a driver that
    keeps the rest for L1 would choose; then `shared memory` is a limiter where it just suffices.
    How many blocks fit is the same with `most` and `predicted`. Raises AssayError for a size that
    is larger than any.
    """
    registers, register_limit = _by_registers(taken, sm)
    shared = _up(taken.shared_bytes + sm.reserved_bytes, sm.shared_unit)
    limits: dict[str, int | None] = {
        "registers": register_limit,
        "shared memory": None,
        "warps": 0 if taken.threads > MOST_THREADS else sm.warps // taken.warps,
        "blocks": sm.blocks,
        "barriers": sm.barriers // taken.barriers if sm.barriers and taken.barriers else None,
    }
    others = _least(limits)
    size = _carveout(carveout, sm, shared, others)
    limits["shared memory"] = size // shared if shared else None
    if taken.shared_bytes > sm.block_shared_bytes:
        limits["shared memory"] = 0
    blocks = _least(limits)
    return Occupancy(
        limits=limits,
        blocks=blocks,
        warps=blocks * taken.warps,
        most_warps=sm.warps,
        carveout_bytes=size,
        carveout=carveout if isinstance(carveout, str) else GIVEN,
        registers=registers,
        shared_bytes=shared,
    )


def _by_registers(taken: Footprint, sm: Multiprocessor) -> tuple[int, int | None]:
    """Registers that a block is handed out, and how many blocks they allow.

    A warp's registers come from the quarter that belongs to its scheduler, in whole units. The
    hardware refuses a block as if its warps were as many as fill all schedulers evenly.
    """
    per_warp = _up(taken.registers * WARP, REGISTER_UNIT)
    total = per_warp * taken.warps
    if taken.registers > REGISTERS_A_THREAD or per_warp * _up(taken.warps, SCHEDULERS) > REGISTERS:
        return total, 0
    if not per_warp:
        return total, None
    warps = REGISTERS // SCHEDULERS // per_warp * SCHEDULERS
    return total, warps // taken.warps


def _carveout(asked: int | str, sm: Multiprocessor, shared: int, blocks: int) -> int:
    if asked == MOST:
        return sm.shared_bytes
    if asked == PREDICTED:
        wanted = min(blocks * shared, sm.shared_bytes // shared * shared if shared else 0)
    else:
        wanted = max(int(asked), min(shared, sm.shared_bytes))
    for size in sm.carveouts_bytes:
        if size >= wanted:
            return size
    raise AssayError(
        f"shared memory set to {wanted:,} bytes: {sm.arch} has at most {sm.shared_bytes:,}"
    )


def _least(limits: Mapping[str, int | None]) -> int:
    return min(most for most in limits.values() if most is not None)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
