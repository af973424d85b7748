"""What an entry of the corpus is, and how its arguments are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

FOLDER = Path(__file__).parent
Arguments = list[Any]
Tolerance = tuple[float, float, str]

EXACT: Tolerance = (0.0, 0.0, "whole numbers, or values that are only moved")
FLOAT: Tolerance = (2e-5, 2e-5, "float32 sums of up to some hundred terms, rounded in any order")
FUNCTION: Tolerance = (2e-5, 2e-6, "float32 functions within a few units in the last place")
FAST: Tolerance = (2e-4, 2e-4, "approximate exp, log2, division: relative 2^-21 of a scaled value")
HALF: Tolerance = (2e-3, 2e-3, "results rounded to 11 bits, some of them twice")
BFLOAT: Tolerance = (1.6e-2, 1e-2, "results rounded to 8 bits, some of them twice")
DOUBLE: Tolerance = (1e-12, 1e-12, "float64 with a few roundings")


@dataclass(frozen=True)
class Entry:
    """A kernel, a launch of it, and what is right.

    source: a .cu of this folder, or the module whose function `kernel` is. kernel: a name, or a
    template's instance as C++ writes it. make: a seed to the arguments in the order of the
    kernel's parameters (torch CPU tensors, numbers, bytes). outputs: positions of the arguments
    that the kernel writes. reference: what they must hold, from the arguments as they were before,
    as float64 or whole numbers. constants: arguments by name (Triton), module variables (CUDA).
    unwritten: positions of outputs that the kernel must not read before it writes them.
    """

    name: str
    way: str
    source: str
    kernel: str
    make: Callable[[int], Arguments]
    reference: Callable[[Arguments], list[torch.Tensor]]
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] = (128,)
    shared: int = 0
    outputs: tuple[int, ...] = (0,)
    tolerance: Tolerance = EXACT
    flags: tuple[str, ...] = ()
    constants: Mapping[str, Any] = field(default_factory=dict)
    unwritten: tuple[int, ...] = ()
    mutate: bool = False
    tags: frozenset[str] = frozenset()
    canonical: Callable[[list[torch.Tensor]], list[torch.Tensor]] | None = None
    """From outputs that depend on the order of threads to what does not."""
    printed: str = ""
    """What the kernel's printf must write; lines in any order."""


class Pointers(list[Any]):
    """A tensor of addresses, and the tensors at them."""

    def __init__(self, tensor: torch.Tensor, rows: list[torch.Tensor]):
        super().__init__()
        self.tensor, self.rows = tensor, rows


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed)).to(dtype)


def uniform(seed: int, low: float, high: float, *shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=seeded(seed)) * (high - low) + low


def integers(
    seed: int, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int32
) -> torch.Tensor:
    """Whole numbers of [low, high)."""
    return torch.randint(low, high, shape, generator=seeded(seed)).to(dtype)


def permutation(seed: int, n: int) -> torch.Tensor:
    return torch.randperm(n, generator=seeded(seed)).to(torch.int32)


def blank(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """An output before the kernel: NaN, or a whole number that nothing computes."""
    return torch.full(shape, float("nan") if dtype.is_floating_point else -77, dtype=dtype)


def exact(tensor: torch.Tensor) -> torch.Tensor:
    """float64, or the whole numbers as they are."""
    return tensor.double() if tensor.dtype.is_floating_point else tensor


def blocks(n: int, of: int) -> int:
    return -(-n // of)


def cuda(
    source: str,
    kernel: str,
    make: Callable[[int], Arguments],
    reference: Callable[..., Any],
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *,
    name: str = "",
    tags: str = "",
    **more: Any,
) -> Entry:
    """An entry of a .cu. reference: called with the arguments; gives one tensor, or a list."""
    return Entry(
        name=name or kernel,
        way="cuda",
        source=source,
        kernel=kernel,
        make=make,
        reference=listed(reference),
        grid=(grid,) if isinstance(grid, int) else grid,
        block=(block,) if isinstance(block, int) else block,
        tags=frozenset(tags.split()),
        **more,
    )


def listed(reference: Callable[..., Any]) -> Callable[[Arguments], list[torch.Tensor]]:
    def called(args: Arguments) -> list[torch.Tensor]:
        value = reference(*args)
        return [exact(v) for v in (value if isinstance(value, list) else [value])]

    return called
