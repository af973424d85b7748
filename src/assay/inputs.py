"""Seeded data for a case, the same bits in every process: made on the CPU, then moved."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy.random  # by name: NumPy would import it at its first use, in every child
import torch

from .cases import ALIASES
from .errors import AssayError, OpError
from .faults import told
from .hostile import twisted
from .op import Op, make_inputs
from .types import Case

BLOCK = 1 << 20
"""Elements that are drawn from one stream of random numbers."""


def dtype_of(name: str | torch.dtype) -> torch.dtype:
    """The torch dtype of that name or alias. Raises OpError naming those there are."""
    if isinstance(name, torch.dtype):
        return name
    found = getattr(torch, ALIASES.get(name, name), None)
    if not isinstance(found, torch.dtype):
        raise OpError(f"no dtype called {name!r}; say float32, bfloat16, float16, int64, ...")
    return found


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class Make:
    """Makes the tensors of one case. Each call draws from its own stream of the case's seed.

    Shapes are ints or one tuple; dtype is a name or a torch dtype; every tensor is contiguous.
    """

    def __init__(self, seed: int, device: str = "cpu"):
        self._seed, self._device, self._calls = seed, device, 0

    def next_seed(self) -> int:
        """A seed of 63 bits for a generator of your own; every call gives another one."""
        # A hash, so that neighbouring seeds and neighbouring inputs share no stream.
        digest = hashlib.blake2b(f"{self._seed}/{self._calls}".encode(), digest_size=8).digest()
        self._calls += 1
        return int.from_bytes(digest, "little") >> 1

    def place(self, value: object) -> object:
        """A value made elsewhere, moved to where this case's inputs live."""
        return value.to(self._device) if isinstance(value, torch.Tensor) else value

    def _generator(self) -> torch.Generator:
        return torch.Generator().manual_seed(self.next_seed())

    def _finish(self, made: torch.Tensor, dtype: str | torch.dtype) -> torch.Tensor:
        return made.to(dtype_of(dtype)).to(self._device)

    def _drawn(
        self,
        shape: tuple[Any, ...],
        dtype: str | torch.dtype,
        draw: Callable[[torch.Tensor, torch.Generator], object],
    ) -> torch.Tensor:
        """A tensor filled a block at a time, each from a stream of its own, by several threads."""
        wide = torch.float64 if dtype_of(dtype) is torch.float64 else torch.float32
        made, seed = torch.empty(_shape(shape), dtype=wide), self.next_seed()
        blocks = made.view(-1).split(BLOCK) if made.numel() else ()

        def fill(index: int) -> None:
            draw(blocks[index], torch.Generator().manual_seed((seed + index) % 2**63))

        if len(blocks) < 2:
            for index in range(len(blocks)):
                fill(index)
        else:
            with ThreadPoolExecutor(torch.get_num_threads()) as pool:
                list(pool.map(fill, range(len(blocks))))
        return self._finish(made, dtype)

    def normal(
        self,
        *shape: Any,
        dtype: str | torch.dtype = "float32",
        mean: float = 0.0,
        std: float = 1.0,
    ) -> torch.Tensor:
        """Normally distributed values."""
        return self._drawn(shape, dtype, lambda part, g: part.normal_(mean, std, generator=g))

    def uniform(
        self,
        *shape: Any,
        low: float = 0.0,
        high: float = 1.0,
        dtype: str | torch.dtype = "float32",
    ) -> torch.Tensor:
        """Values between `low` and `high`, evenly spread."""
        return self._drawn(shape, dtype, lambda part, g: part.uniform_(low, high, generator=g))

    def integers(
        self, *shape: Any, low: int = 0, high: int = 100, dtype: str | torch.dtype = "int64"
    ) -> torch.Tensor:
        """Integers from `low` up to and without `high`."""
        made = torch.randint(low, high, _shape(shape), generator=self._generator())
        return self._finish(made, dtype)

    def booleans(self, *shape: Any, chance: float = 0.5) -> torch.Tensor:
        """True with the given chance."""
        made = torch.empty(_shape(shape)).uniform_(generator=self._generator()) < chance
        return self._finish(made, torch.bool)

    def full(self, *shape: Any, value: float, dtype: str | torch.dtype = "float32") -> torch.Tensor:
        """One value everywhere: for checking; constant data is refused for timing."""
        self._calls += 1
        return self._finish(torch.full(_shape(shape), value, dtype=torch.float64), dtype)


def _shape(shape: tuple[Any, ...]) -> tuple[int, ...]:
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise OpError(f"a shape is made of ints >= 0, not {sizes!r}")
    return sizes


def inputs_of(op: Op, case: Case, seed: int, device: str = "cpu") -> tuple[Any, ...]:
    """The inputs of a case under a seed (mixed with the case's own).

    A plain torch.randn or numpy.random.rand in them gives the same values in every process too.
    A case of the zoo has what it says done to one of them. Raises OpError if they raise, or hold
    what can be neither judged nor copied.
    """
    make = Make(case.seed * 1_000_003 + seed, device)
    try:
        with _seeded(make.next_seed()):
            values = make_inputs(op, make, case)
    except (AssayError, torch.cuda.OutOfMemoryError):
        raise
    except Exception as error:
        raise OpError(f"{op.name}: inputs({case.label}): {told(error)}") from error
    for index, value in enumerate(values):
        if not isinstance(value, (torch.Tensor, int, float, complex, str, torch.dtype, type(None))):
            raise OpError(
                f"{op.name}: input {index} is a {type(value).__name__}; inputs are tensors, "
                "numbers, bools and strings, each by itself"
            )
    made = tuple(v.detach() if isinstance(v, torch.Tensor) else v for v in values)
    if not case.zoo:
        return made
    return twisted(made, op.input_names(len(made)), case.zoo, make.next_seed())


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seeds the random numbers of torch, NumPy and Python, and puts them back afterwards."""
    before = random.getstate(), numpy.random.get_state(), torch.get_rng_state()
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        numpy.random.set_state(before[1])
        torch.set_rng_state(before[2])


def tensor_bytes(values: Any) -> int:
    """Bytes of all tensors among some values, each counted by its elements."""
    return sum(v.numel() * v.element_size() for v in values if isinstance(v, torch.Tensor))


def varies(values: Any) -> bool:
    """Whether any tensor with more than one element holds different values (timing needs that)."""
    tensors = [v for v in values if isinstance(v, torch.Tensor) and v.numel() > 1]
    return not tensors or any(bool((t != t.flatten()[0]).any()) for t in tensors)


def to_meta(value: Any) -> Any:
    """A tensor's shape, strides and dtype without its values; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
