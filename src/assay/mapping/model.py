"""The coverage map: of each tensor, who read and wrote which element, and how often.

Blocks (programs, in Triton) have their number in the grid, x fastest; -1 is nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

FIELDS = ("reads", "writes", "atomics", "readers", "writers")
WHO = ("first_reader", "last_reader", "first_writer", "last_writer")
THREADS = ("first_reading", "last_reading", "first_writing", "last_writing")
ELEMENT = np.dtype(
    [*((name, np.uint32) for name in (*FIELDS, *WHO, *THREADS)), ("partly", np.bool_)]
)
"""What is known of one element in one launch. Blocks are numbered from 1 here."""
Index = tuple[int, ...]


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    @property
    def text(self) -> str:
        """`kernel[(4,), (128,)]`, without the sizes that are 1 at the end."""
        return f"{self.kernel}[{_size(self.grid)}, {_size(self.block)}]"


def _size(three: tuple[int, int, int]) -> str:
    x, y, z = three
    kept: tuple[int, ...] = three if z > 1 else (x, y) if y > 1 else (x,)
    return str(kept) if len(kept) > 1 else str(x)


@dataclass(frozen=True)
class Accesses:
    """Of every element of a tensor, in one launch or in all: arrays of the tensor's shape."""

    elements: Any = field(repr=False)
    """NumPy array of ELEMENT."""

    @property
    def read_counts(self) -> Any:
        """How often it was loaded; a masked-off lane loads nothing."""
        return self.elements["reads"].astype(np.int64)

    @property
    def write_counts(self) -> Any:
        """How often it was stored or changed by an atomic operation."""
        return self.elements["writes"].astype(np.int64) + self.elements["atomics"]

    @property
    def atomic_counts(self) -> Any:
        return self.elements["atomics"].astype(np.int64)

    @property
    def written_by(self) -> Any:
        """The block that wrote it first; -1: none did."""
        return self._who("first_writer")

    @property
    def last_written_by(self) -> Any:
        return self._who("last_writer")

    @property
    def written_by_thread(self) -> Any:
        """The thread, in its block, that wrote it first; -1: none did."""
        return np.where(self._who("first_writer") < 0, -1, self._int("first_writing"))

    @property
    def read_by(self) -> Any:
        """The block that read it first; -1: none did."""
        return self._who("first_reader")

    @property
    def read_by_thread(self) -> Any:
        return np.where(self._who("first_reader") < 0, -1, self._int("first_reading"))

    @property
    def writers(self) -> Any:
        """How many different blocks of one launch wrote it (2 may be more: see `Tensor`)."""
        return self._int("writers")

    @property
    def readers(self) -> Any:
        return self._int("readers")

    @property
    def partly_written(self) -> Any:
        """Whether only some of its bytes were written."""
        return self.elements["partly"]

    @property
    def overlaps(self) -> Any:
        """Written by several blocks, and not by atomic operations alone."""
        return (self.elements["writers"] > 1) & (self.elements["writes"] > 0)

    def _int(self, name: str) -> Any:
        return self.elements[name].astype(np.int64)

    def _who(self, name: str) -> Any:
        return self._int(name) - 1


@dataclass(frozen=True)
class Tensor:
    """A tensor of the call, and what all launches did to it.

    Numbers of different blocks are exact where blocks run one after the other; where they wait for
    one another, 2 stands for two or more.
    """

    name: str
    role: str
    """`input`, `output`, or `own buffer`: allocated by the function and not returned."""
    dtype: str
    shape: tuple[int, ...]
    launches: dict[int, Accesses] = field(default_factory=dict)
    """Number of the launch -> what it did; only launches that could reach the tensor."""
    left: Any = None
    """Where the poison of two runs was left, as a NumPy array of bool; None: not known."""

    @property
    def known(self) -> bool:
        """Whether anything is: memory that torch made inside an operation tells nothing."""
        return bool(self.launches) or self.left is not None

    @cached_property
    def total(self) -> Accesses:
        """All launches together."""
        return Accesses(together([a.elements for a in self.launches.values()], self.shape))

    @cached_property
    def written(self) -> Any:
        """Whether an element was written, by a kernel or by anything else."""
        known = self.total.write_counts > 0
        return known if self.left is None else known | ~self.left

    @cached_property
    def written_otherwise(self) -> Any:
        """Written, and by none of the kernels: by the host, or by an operation of torch."""
        none = self.total.write_counts == 0
        return np.zeros_like(none) if self.left is None else none & ~self.left

    @property
    def never_written(self) -> list[Index]:
        """Indices of the elements that nobody wrote."""
        return indices(~self.written)

    @property
    def never_read(self) -> list[Index]:
        """Indices of the elements that no kernel read."""
        return indices(self.read_counts == 0)

    @property
    def overlapping(self) -> list[Index]:
        """Indices of the elements that several blocks of one launch wrote, not by atomics alone."""
        found = np.zeros(self.shape, np.bool_)
        for one in self.launches.values():
            found |= one.overlaps
        return indices(found)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    read_counts = property(lambda self: self.total.read_counts)
    write_counts = property(lambda self: self.total.write_counts)
    written_by = property(lambda self: self.total.written_by)
    written_by_thread = property(lambda self: self.total.written_by_thread)
    read_by = property(lambda self: self.total.read_by)
    writers = property(lambda self: self.total.writers)
    readers = property(lambda self: self.total.readers)


@dataclass(frozen=True)
class Step:
    """One load or store of one program, as the interpreter ran it."""

    what: str
    """`load`, `store`, `atomic`."""
    tensor: str
    """Empty: an address in none of the tensors."""
    first: int
    last: int
    """Offsets in elements of the lanes that the mask let through, from the tensor's start."""
    step: int | None
    """Between neighbouring lanes; None where it is not the same everywhere."""
    lanes: int
    of: int
    """Lanes that the mask let through, of those there are."""
    place: str = ""
    """`file:line` of the kernel."""


@dataclass(frozen=True)
class CoverageMap:
    """One variant on one case: its launches, and each tensor with who touched it."""

    op: str
    label: str
    case: str
    judge: str
    """What ran it: `sm_80` (compiled code, on the CPU), `interpreter`, `simulator`, `cpu`."""
    launches: tuple[Launch, ...]
    tensors: dict[str, Tensor]
    faults: tuple[str, ...] = ()
    note: str = ""
    """Why it is not what was asked for, or what it can't tell."""
    trace: tuple[Step, ...] = ()
    """Loads and stores of the first program, where the interpreter ran it."""


def indices(where: Any) -> list[Index]:
    """The places that are true, in row-major order."""
    return [tuple(int(i) for i in at) for at in np.argwhere(where)]


def first_of(where: Any) -> Index | None:
    """The first place that is true."""
    flat = where.reshape(-1)
    if not flat.size or not flat.any():
        return None
    return tuple(int(i) for i in np.unravel_index(int(flat.argmax()), where.shape))


def together(parts: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Several launches as one: sums of counts, the most blocks, the first and the last who did."""
    total, whole = np.zeros(shape, ELEMENT), np.zeros(shape, np.bool_)
    for part in parts:
        for first, thread in (("first_reader", "first_reading"), ("first_writer", "first_writing")):
            new = (total[first] == 0) & (part[first] > 0)
            for name in (first, thread):
                total[name] = np.where(new, part[name], total[name])
        for last, thread in (("last_reader", "last_reading"), ("last_writer", "last_writing")):
            new = part[last] > 0
            for name in (last, thread):
                total[name] = np.where(new, part[name], total[name])
        whole |= (part["writes"] + part["atomics"] > 0) & ~part["partly"]
        total["partly"] |= part["partly"]
        for name in ("reads", "writes", "atomics"):
            total[name] += part[name]
        for name in ("readers", "writers"):
            total[name] = np.maximum(total[name], part[name])
    total["partly"] &= ~whole
    return total
