"""Hostile inputs: what is done to the values or the layout of one input, so that assumptions show.

A Case whose `zoo` is `x:nan` is the case itself with `nan` done to the input x; `size` says that
only its values (sizes) differ from what the Op declares. verdict/zoo.py chooses them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .op import KINDS

SIZE = "size"
Values = Callable[[torch.Tensor, torch.Generator], torch.Tensor]
Layout = Callable[[torch.Tensor], torch.Tensor]


def _nan(x: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """One NaN."""
    return _set(x, random, [torch.nan])


def _inf(x: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """One +inf and, unless the values are never negative, one -inf."""
    return _set(x, random, [torch.inf] if _positive(x) else [torch.inf, -torch.inf])


def _masked(x: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """-inf in the first half of the first row, as masked scores have it."""
    row = x.view(-1, x.shape[-1])[0]
    row[: (len(row) + 1) // 2] = -torch.inf
    return x


def _zeros(x: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """0 and -0 by turns."""
    every_other = x.view(-1)[1::2]
    zero = 0.0 if _positive(x) else -0.0
    x.zero_()
    every_other.fill_(zero)
    return x


def _equal(x: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """One value everywhere."""
    return x.fill_(x.reshape(-1)[0].item())


def _wide(x: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Magnitudes from 1e-6 to 1e4 (float16: 1e3), evenly spread in their logarithm."""
    most = 3.0 if x.dtype is torch.float16 else 4.0
    powers = torch.empty(x.shape, dtype=torch.float64).uniform_(-6.0, most, generator=random)
    signs = torch.where(x < 0, -1.0, 1.0)
    return (signs * 10**powers).to(x.dtype)


def _huge(x: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Scaled so that the largest is a quarter of the largest finite number."""
    return _scaled(x, torch.finfo(x.dtype).max / 4)


def _tiny(x: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Scaled so that the largest is 64 times the smallest normal number."""
    return _scaled(x, torch.finfo(x.dtype).smallest_normal * 64)


def _denormal(x: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Every other value below the smallest normal number."""
    small = _scaled(x.clone(), torch.finfo(x.dtype).smallest_normal / 4)
    x.view(-1)[::2] = small.view(-1)[::2]
    return x


def _set(x: torch.Tensor, random: torch.Generator, values: list[float]) -> torch.Tensor:
    """Some values at places of their own."""
    places = torch.randperm(x.numel(), generator=random)[: len(values)]
    for place, value in zip(places.tolist(), values):
        x.view(-1)[place] = value
    return x


def _scaled(x: torch.Tensor, largest: float) -> torch.Tensor:
    size = float(x.abs().max())
    return (x.double() * (largest / size)).to(x.dtype) if size > 0 else x


def _positive(x: torch.Tensor) -> bool:
    return not bool((x < 0).any())


VALUES: dict[str, Values] = {
    "nan": _nan,
    "inf": _inf,
    "masked": _masked,
    "zeros": _zeros,
    "equal": _equal,
    "wide": _wide,
    "huge": _huge,
    "tiny": _tiny,
    "denormal": _denormal,
}
"""Done to a contiguous copy of a floating-point input. What was never negative stays so."""


def _transposed(x: torch.Tensor) -> torch.Tensor:
    """The last two dimensions lie the other way round in memory."""
    return x.transpose(-1, -2).contiguous().transpose(-1, -2)


def _stepped(x: torch.Tensor) -> torch.Tensor:
    """Every other element of a tensor twice as wide."""
    wide = x.new_zeros(*x.shape[:-1], 2 * x.shape[-1])
    wide[..., ::2] = x
    return wide[..., ::2]


def _expanded(x: torch.Tensor) -> torch.Tensor:
    """The first entry along the first dimension, expanded: stride 0. This changes the values."""
    return x[:1].contiguous().expand(x.shape)


def _broadcast(x: torch.Tensor) -> torch.Tensor:
    """One value with stride 0 along every dimension, as the gradient of a sum is."""
    return x.reshape(-1)[:1].clone().expand(x.numel()).as_strided(x.shape, (0,) * x.dim())


def _far(x: torch.Tensor) -> torch.Tensor:
    """Rows so far apart that the last begins beyond 2^31 elements: an index of 32 bits wraps.

    Only what the rows themselves fill is touched, so that the memory between need not be there.
    """
    inner = x.numel() // x.shape[0]
    step = 2**31 // (x.shape[0] - 1) + inner
    strides = (step, *x[0].contiguous().stride())
    return torch.empty_strided(x.shape, strides, dtype=x.dtype).copy_(x)


MOST_FAR = 256
"""Rows of a `far` input: each takes a page of its own, of 2 MB at most."""


def _offset(x: torch.Tensor) -> torch.Tensor:
    """Contiguous, and one element away from where it would be aligned."""
    longer = x.new_zeros(x.numel() + 1)
    longer[1:] = x.reshape(-1)
    return longer[1:].view(x.shape)


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    kind = {4: torch.channels_last, 5: torch.channels_last_3d}[x.dim()]
    return x.contiguous(memory_format=kind)


LAYOUTS: dict[str, Layout] = {
    "transposed": _transposed,
    "stepped": _stepped,
    "expanded": _expanded,
    "broadcast": _broadcast,
    "far": _far,
    "offset": _offset,
    "channels_last": _channels_last,
}
"""Done to any tensor among the inputs."""
CONTIGUOUS = ("offset",)
"""Layouts that are left after `.contiguous()`."""
assert (SIZE, *VALUES, *LAYOUTS) == KINDS


def applies(kind: str, value: Any) -> bool:
    """Whether a kind of hostile input can be made of this input, and would differ from it."""
    if not isinstance(value, torch.Tensor) or not value.numel():
        return False
    if kind == "transposed":
        return value.dim() >= 2 and min(value.shape[-2:]) > 1
    if kind == "expanded":
        return value.dim() >= 1 and value.shape[0] > 1
    if kind == "far":
        return value.dim() >= 2 and 1 < value.shape[0] <= MOST_FAR
    if kind == "broadcast":
        return value.numel() > 1
    if kind == "channels_last":
        return value.dim() in (4, 5) and value.shape[1] > 1
    if kind in LAYOUTS:
        return value.dim() >= 1
    if not value.is_floating_point() or value.itemsize < 2:
        return False
    return kind != "masked" or (value.dim() > 0 and value.shape[-1] > 1 and not _positive(value))


def twisted(values: tuple[Any, ...], names: list[str], zoo: str, seed: int) -> tuple[Any, ...]:
    """The inputs with what `zoo` says done to the one it names. Raises KeyError for another zoo."""
    name, _, kind = zoo.rpartition(":")
    if kind == SIZE:
        return values
    index = names.index(name)
    value = values[index]
    if kind in LAYOUTS:
        made = LAYOUTS[kind](value)
    else:
        copy = value.clone(memory_format=torch.contiguous_format)
        made = VALUES[kind](copy, torch.Generator().manual_seed(seed))
    return (*values[:index], made, *values[index + 1 :])
