"""What a launch may ask for: limits of the hardware, and of what can be run here."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import LaunchError
from .code import Code
from .faults import NotCheckable

Three = tuple[int, int, int]

MOST_SHARED = {
    **{"sm_70": 98_304, "sm_75": 65_536, "sm_80": 166_912, "sm_86": 101_376, "sm_87": 166_912},
    **{"sm_89": 101_376, "sm_90": 232_448, "sm_100": 232_448, "sm_103": 232_448},
    **{"sm_120": 101_376, "sm_121": 101_376},
}
"""Bytes of shared memory a block can have (CUDA C++ Programming Guide, compute capabilities)."""
MOST_GRID = (2**31 - 1, 65_535, 65_535)
MOST_BLOCK = (1024, 1024, 64)
MOST_THREADS = 1024
MOST_LOCAL = 512 << 10
"""Bytes of local memory a thread (the same tables)."""
MOST_BLOCKS, MOST_RESIDENT_BLOCKS = 1 << 26, 1 << 18
"""Blocks that can be run here: one by one, and where they wait for one another."""


def three(what: str, sizes: Sequence[int]) -> Three:
    """The sizes of a grid or a block. Raises LaunchError."""
    padded = (*(int(s) for s in sizes), 1, 1)[:3]
    most = MOST_GRID if what == "grid" else MOST_BLOCK
    if len(sizes) > 3 or any(s < 1 for s in padded):
        raise LaunchError(f"{what}={tuple(sizes)}: one to three sizes of at least 1")
    if any(size > limit for size, limit in zip(padded, most)):
        raise LaunchError(f"{what}={tuple(sizes)}: the limits are {most}")
    return padded[0], padded[1], padded[2]


def check(name: str, arch: str, code: Code, grid: Three, block: Three, shared: int) -> None:
    """Raises LaunchError for what no GPU would launch, NotCheckable for what can't be run here."""
    threads = math.prod(block)
    if threads > MOST_THREADS:
        raise LaunchError(f"{name}: {threads:,} threads a block, limit {MOST_THREADS:,}")
    if code.threads and threads > math.prod(code.threads):
        raise LaunchError(
            f"{name}: {threads:,} threads a block; it was compiled for at most "
            f"{math.prod(code.threads):,}"
        )
    if shared < 0:
        raise LaunchError(f"{name}: shared={shared}")
    most = MOST_SHARED.get(arch.rstrip("af"), 232_448)
    if code.static_shared + shared > most:
        raise LaunchError(
            f"{name}: shared memory: asked {shared:,} + static {code.static_shared:,}; at most "
            f"{most:,} on {arch}"
        )
    blocks = math.prod(grid)
    limit = MOST_RESIDENT_BLOCKS if code.communicates else MOST_BLOCKS
    if blocks > limit:
        raise NotCheckable(
            f"a grid of {blocks:,} blocks; at most {limit:,} of this kernel run here"
        )
    if code.local_bytes > MOST_LOCAL:
        raise NotCheckable(f"{code.local_bytes:,} bytes of local memory a thread")
