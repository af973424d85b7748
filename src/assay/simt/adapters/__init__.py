"""Other compilers' launches as PTX and arguments: triton.py, numba.py, inductor.py.

Each adapter compiles for a GPU on a machine without one, and hands every launch to a function of
the caller, a `Run`. None of them knows how the PTX is run, counted or judged.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...errors import NotRun

DEFAULT_ARCH = "sm_80"
Size = tuple[int, int, int]
KNOWN = (75, 80, 86, 89, 90, 100, 120)
"""Compute capabilities that kernels are compiled for here; what of them is run, forms/ says."""


@dataclass(frozen=True)
class Compiled:
    """A kernel as a GPU compiler leaves it.

    name: the entry in ptx. way: triton, numba or inductor. settings: what it was compiled for, as
    names and values (constants, warps). cooperative: its blocks may wait for one another, so that
    all of them have to be resident. file, line: where its function begins.
    """

    name: str
    ptx: str = field(repr=False)
    arch: str
    way: str
    settings: tuple[tuple[str, Any], ...] = field(default=(), compare=False)
    cooperative: bool = False
    file: str = ""
    line: int = 0

    @property
    def one_program(self) -> bool:
        """Whether a block is one program, whose compiler shared its elements out to threads."""
        return self.way in ("triton", "inductor")


Run = Callable[[Compiled, Size, Size, list[Any], int], None]
"""What an adapter calls for a launch: (compiled, grid, block, args, shared).

args: one for each parameter of the PTX entry, in order: a tensor or array (a pointer to its
memory), None (a null pointer), int (in the range of the parameter's unsigned type), float, or
bytes (the parameter as it is in memory). shared: dynamic shared memory in bytes.
"""


def capability(arch: str) -> int:
    """`sm_80` or `sm_90a` as 80 or 90."""
    found = re.fullmatch(r"sm_(\d+)a?", arch)
    if not found or int(found.group(1)) not in KNOWN:
        known = ", ".join(f"sm_{number}" for number in KNOWN)
        raise NotRun(f"architecture {arch!r} is not one that is compiled for here: {known}")
    return int(found.group(1))


def size(value: Any) -> Size:
    """A grid or a block of one to three dimensions as three numbers."""
    numbers = tuple(int(n) for n in value) if isinstance(value, (tuple, list)) else (int(value),)
    if not 1 <= len(numbers) <= 3:
        raise NotRun(f"a grid or block of {len(numbers)} dimensions: {value!r}")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)")
PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)[^,\[]*(?:\[(\d+)\])?")


def parameters(ptx: str, name: str) -> list[tuple[str, int]]:
    """Type and bytes of each parameter of an entry: `("u32", 4)`, `("b8", 16)`."""
    for entry, text in ENTRY.findall(ptx):
        if entry == name:
            found = PARAMETER.findall(text)
            return [(t, int(re.sub(r"\D", "", t)) // 8 * int(n or 1)) for t, n in found]
    raise NotRun(f"there is no entry {name!r} in the PTX")


def whole(value: Any, nbytes: int) -> int:
    """An integer as the bits of an unsigned parameter of this many bytes."""
    return int(value) & ((1 << 8 * nbytes) - 1)


def bfloat16(value: float) -> bytes:
    """A number rounded to bfloat16, to nearest even, as two bytes."""
    import torch

    return struct.pack("<h", torch.tensor(value, dtype=torch.bfloat16).view(torch.int16).item())
