"""What a launch may ask for: limits of the hardware, and of what can be run here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from .. import hardware
from ..errors import LaunchError, NotRun
from .code import Code
from .faults import NotCheckable

Three = tuple[int, int, int]

MOST_BLOCKS, MOST_RESIDENT_BLOCKS = 1 << 26, 1 << 18
"""Blocks that can be run here: one by one, and where they wait for one another."""


def three(what: str, sizes: Sequence[int]) -> Three:
    """The sizes of a grid or a block. Raises LaunchError."""
    padded = (*(int(s) for s in sizes), 1, 1)[:3]
    most = hardware.GRID if what == "grid" else hardware.BLOCK
    if len(sizes) > 3 or any(s < 1 for s in padded):
        raise LaunchError(f"{what}={tuple(sizes)}: one to three sizes of at least 1")
    if any(size > limit for size, limit in zip(padded, most)):
        raise LaunchError(f"{what}={tuple(sizes)}: the limits are {most}")
    return padded[0], padded[1], padded[2]


def check(name: str, arch: str, code: Code, grid: Three, block: Three, shared: int) -> None:
    """Raises LaunchError for what no GPU would launch, NotCheckable for what can't be run here."""
    threads = math.prod(block)
    if threads > hardware.THREADS:
        raise LaunchError(f"{name}: {threads:,} threads a block, limit {hardware.THREADS:,}")
    if code.threads and threads > math.prod(code.threads):
        raise LaunchError(
            f"{name}: {threads:,} threads a block; it was compiled for at most "
            f"{math.prod(code.threads):,}"
        )
    if shared < 0:
        raise LaunchError(f"{name}: shared={shared}")
    most = hardware.shared_of(arch) or max(hardware.SHARED.values())
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
    if code.local_bytes > hardware.LOCAL:
        raise NotCheckable(f"{code.local_bytes:,} bytes of local memory a thread")


MEMORY_SHARE = 0.5
"""Of the free memory, that watching may take."""


def room(name: str, needed: int) -> None:
    """Raises NotRun where watching a launch would take more memory than there is."""
    free = _free()
    if free is not None and needed > MEMORY_SHARE * free:
        raise NotRun(
            f"{name}: watching it takes {needed / 1e9:.1f} GB beside its tensors, and "
            f"{free / 1e9:.1f} GB are free; choose a smaller case"
        )


def _free() -> int | None:
    """Bytes of memory that can still be had, where the system says."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return 1024 * int(found[0]) if found else None
