"""What a multiprocessor can hold at most, by architecture, from sm_75 to sm_121.

Sources, in the CUDA 13 wheels: `cuda/__device/arch_traits.h` of CCCL for threads, blocks and shared
memory of a multiprocessor and what the driver reserves; `cuda_occupancy.h` for granularities, the
sizes that shared memory can be set to, schedulers and block barriers. Both are compared with this
table by tests/test_geometry_header.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...errors import AssayError

KB = 1024
WARP = 32
REGISTERS = 65_536
"""32-bit registers of a multiprocessor, and of a block at most (arch_traits.h)."""
REGISTERS_A_THREAD = 255
"""Most of a thread (arch_traits.h). cuda_occupancy.h lets 256 pass, which no compiler gives."""
REGISTER_UNIT = 256
"""Registers are handed out to a warp in units of this many (cuda_occupancy.h)."""
SCHEDULERS = 4
"""Of a multiprocessor; each has a quarter of the registers (cuda_occupancy.h)."""
SMALL = (0, 8, 16, 32, 64, 100)
MIDDLE = (*SMALL, 132, 164)
LARGE = (*MIDDLE, 196, 228)


@dataclass(frozen=True)
class Multiprocessor:
    """The limits of one multiprocessor. Bytes of shared memory."""

    arch: str
    threads: int
    blocks: int
    carveouts_bytes: tuple[int, ...]
    """What shared memory can be set to, the rest being L1 cache; the last is the most."""
    reserved_bytes: int
    """What the driver keeps of every block's shared memory."""
    shared_unit: int
    """Shared memory is handed out to a block in units of this many bytes."""
    barriers: int | None
    """Block barriers; None where cuda_occupancy.h counts none (before sm_90)."""

    @property
    def warps(self) -> int:
        """Most warps that are resident at a time."""
        return self.threads // WARP

    @property
    def shared_bytes(self) -> int:
        """Most shared memory of all its blocks together."""
        return self.carveouts_bytes[-1]

    @property
    def block_shared_bytes(self) -> int:
        """Most shared memory that one block can ask for."""
        return self.shared_bytes - self.reserved_bytes


def _one(
    number: int, threads: int, blocks: int, carveouts: tuple[int, ...], barriers: int | None
) -> Multiprocessor:
    newer = number >= 80
    return Multiprocessor(
        arch=f"sm_{number}",
        threads=threads,
        blocks=blocks,
        carveouts_bytes=tuple(size * KB for size in carveouts),
        reserved_bytes=KB if newer else 0,
        shared_unit=128 if newer else 256,
        barriers=barriers,
    )


MULTIPROCESSORS = {
    one.arch: one
    for one in (
        _one(75, 1024, 16, (32, 64), None),
        _one(80, 2048, 32, MIDDLE, None),
        _one(86, 1536, 16, SMALL, None),
        _one(87, 1536, 16, MIDDLE, None),
        _one(89, 1536, 24, SMALL, None),
        _one(90, 2048, 32, LARGE, 64),
        _one(100, 2048, 32, LARGE, 64),
        _one(103, 2048, 32, LARGE, 32),
        _one(110, 1536, 24, LARGE, 24),
        _one(120, 1536, 24, SMALL, 24),
        _one(121, 1536, 24, SMALL, 24),
    )
}


def multiprocessor(arch: str) -> Multiprocessor:
    """The limits of `sm_90`, `sm_90a` or `9.0`. Raises AssayError naming those that are known."""
    found = re.fullmatch(r"(?:sm_)?(\d+)\.?(\d)[af]?", arch)
    name = f"sm_{found.group(1)}{found.group(2)}" if found else arch
    if name not in MULTIPROCESSORS:
        known = ", ".join(MULTIPROCESSORS)
        raise AssayError(f"no limits are known of {arch!r}; those known are {known}")
    return MULTIPROCESSORS[name]
