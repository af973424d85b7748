"""Windows: which memory of this process a kernel may touch, and what is known of each byte."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

SHADOW_BYTES = 20
"""Of a granule: who wrote, who read, where it was written."""


@dataclass
class Window:
    """One piece of memory, for as long as its Memory."""

    start: int
    """Address in this process."""
    bytes: int
    name: str = ""
    written: Any = None
    """NumPy uint8, 1 for each byte that has been written; None: all have."""
    read_only: bool = False
    keep: Any = None
    """What owns the memory."""
    shadows: dict[tuple[int, int, int], tuple[Any, Any, Any]] = field(default_factory=dict)
    """(worker, granule shift, numbering) -> writer, reader, site of the writer, of each granule."""

    @property
    def end(self) -> int:
        return self.start + self.bytes

    def shadow(self, worker: int, shift: int) -> tuple[Any, Any, Any]:
        key = _key(worker, shift)
        if key not in self.shadows:
            granules = (self.bytes >> shift) + 64
            self.shadows[key] = _Pool.take(granules)
        return self.shadows[key]

    def wants(self, workers: int, shift: int) -> int:
        """Bytes that shadows for so many workers would newly take."""
        new = sum(_key(worker, shift) not in self.shadows for worker in range(workers))
        return new * SHADOW_BYTES * (self.bytes >> shift)

    def __del__(self) -> None:
        for (_, _, numbering), shadow in self.shadows.items():
            if numbering == _Pool.numbering:
                _Pool.give(shadow)


def _key(worker: int, shift: int) -> tuple[int, int, int]:
    return worker, shift, _Pool.numbering


class _Pool:
    """Shadows that are free. Blocks are numbered on through a process, so old ones mean nothing."""

    MOST_BYTES = 256 << 20
    free: ClassVar[dict[int, list[tuple[Any, Any, Any]]]] = {}
    held = 0
    blocks = 1
    numbering = 0
    """Goes up when numbers run out and begin anew, with new shadows."""

    @classmethod
    def take(cls, granules: int) -> tuple[Any, Any, Any]:
        size = 1 << max(granules - 1, 1).bit_length()
        if cls.free.get(size):
            cls.held -= size * SHADOW_BYTES
            return cls.free[size].pop()
        return (
            np.zeros(size, np.uint64),
            np.zeros(size, np.uint64),
            np.zeros(size, np.uint32),
        )

    @classmethod
    def give(cls, shadow: tuple[Any, Any, Any]) -> None:
        size = len(shadow[0])
        if cls.held + size * SHADOW_BYTES <= cls.MOST_BYTES:
            cls.held += size * SHADOW_BYTES
            cls.free.setdefault(size, []).append(shadow)

    @classmethod
    def number(cls, blocks: int) -> int:
        """The number of the first of so many new blocks."""
        if cls.blocks + blocks >= 1 << 31:
            cls.free.clear()
            cls.held, cls.blocks = 0, 1
            cls.numbering += 1
        first = cls.blocks
        cls.blocks += blocks
        return first


number_blocks = _Pool.number


class Memory:
    """The windows of some launches that follow each other: what one wrote, the next may read."""

    def __init__(self) -> None:
        self.windows: list[Window] = []

    def find(self, address: int) -> Window | None:
        """The window that holds an address, or ends at it if it is empty."""
        for window in self.windows:
            if window.start <= address < window.end or (
                not window.bytes and window.start == address
            ):
                return window
        return None

    def add(
        self,
        start: int,
        size: int,
        *,
        name: str = "",
        written: bool = True,
        read_only: bool = False,
        keep: Any = None,
    ) -> Window:
        """A window of `size` bytes from an address. written=False: nothing in it is, yet."""
        known = next((w for w in self.windows if w.start == start and w.bytes == size), None)
        if known is None:
            known = Window(start, size, name, None, read_only, keep)
            self.windows.append(known)
        if not written:
            known.written = np.zeros(size + 64, np.uint8)
        return known

    def window_of(self, value: Any, name: str = "") -> tuple[Window, int]:
        """(window, offset of the first element) of a CPU tensor or a NumPy array."""
        address = address_of(value)
        found = self.find(address)
        if found is None:
            start, size = extent(value)
            found = self.add(start, size, name=name, read_only=is_read_only(value), keep=value)
        if name and not found.name:
            found.name = name
        return found, address - found.start

    def touched(self, address: int) -> None:
        """Something other than a kernel has written to the window of this address."""
        found = self.find(address)
        if found is not None:
            found.written = None


def is_array(value: Any) -> bool:
    return hasattr(value, "data_ptr") or hasattr(value, "__array_interface__")


def is_read_only(value: Any) -> bool:
    """Whether it is a NumPy array whose memory may not be written, such as a file's."""
    while isinstance(getattr(value, "base", None), np.ndarray):
        value = value.base
    return isinstance(value, np.ndarray) and not value.flags.writeable


def address_of(value: Any) -> int:
    """Address of the first element."""
    if hasattr(value, "data_ptr"):
        return int(value.data_ptr())
    return int(value.__array_interface__["data"][0])


def extent(value: Any) -> tuple[int, int]:
    """(address, bytes) of all the memory that a tensor or array is a view of."""
    if hasattr(value, "untyped_storage"):
        storage = value.untyped_storage()
        return int(storage.data_ptr()), int(storage.nbytes())
    if hasattr(value, "data_ptr") and hasattr(value, "base"):  # Triton's reinterpreted tensor
        return extent(value.base)
    base = value
    while isinstance(getattr(base, "base", None), np.ndarray):
        base = base.base
    steps = [(n - 1) * stride for n, stride in zip(base.shape, base.strides)]
    low = address_of(base) + sum(min(0, step) for step in steps)
    high = address_of(base) + sum(max(0, step) for step in steps) + base.itemsize
    return low, high - low if base.size else 0
