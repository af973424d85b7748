"""What each granule of memory was used for in one launch, where it is recorded: by whom, how often.

Opt-in: a granule takes 44 bytes and each access of a lane a few nanoseconds, on one core.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import NotRun
from .limits import Three
from .memory import Window

CELL = np.dtype(
    [
        *((name, np.uint32) for name in ("reads", "writes", "atomics", "readers", "writers")),
        *((name, np.uint32) for name in ("first_reader", "last_reader")),
        *((name, np.uint32) for name in ("first_writer", "last_writer")),
        *((name, np.uint16) for name in ("first_reading", "last_reading")),
        *((name, np.uint16) for name in ("first_writing", "last_writing")),
    ]
)
"""`Cell` of runtime/warp.h. Blocks are numbered from 1 there, so that 0 is nobody."""
MOST_BYTES = 256 << 20
"""Of all that a run records: about six million granules."""


@dataclass(frozen=True)
class Recorded:
    """One launch."""

    kernel: str
    grid: Three
    block: Three
    in_turn: bool
    """Blocks ran one after the other, so that changes of block are different blocks."""
    shift: int
    """A granule has 1 << shift bytes."""
    windows: tuple[tuple[Window, Any], ...]
    """Each with its granules: a NumPy array of CELL."""

    def cells(self, window: Window) -> Any:
        """Those of a window, or None: module variables and workspaces are not recorded."""
        return next((cells for known, cells in self.windows if known is window), None)

    @property
    def bytes(self) -> int:
        return sum(cells.nbytes for _, cells in self.windows)


def recording(
    kernel: str,
    grid: Three,
    block: Three,
    in_turn: bool,
    shift: int,
    windows: Sequence[Window],
    room: int = MOST_BYTES,
) -> Recorded:
    """A record with nothing in it yet. Raises NotRun where it would take more than `room` bytes."""
    sizes = [-(-window.bytes >> shift) if window.bytes else 0 for window in windows]
    wanted = sum(sizes) * CELL.itemsize
    if wanted > room:
        raise NotRun(
            f"{kernel}: recording who touches {sum(sizes):,} granules of memory takes "
            f"{wanted / 1e6:,.0f} MB, and {max(room, 0) / 1e6:,.0f} MB of "
            f"{MOST_BYTES / 1e6:,.0f} are left; choose a smaller case: --case"
        )
    made = tuple((window, np.zeros(size, CELL)) for window, size in zip(windows, sizes))
    return Recorded(kernel, grid, block, in_turn, shift, made)
