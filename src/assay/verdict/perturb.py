"""Inputs moved a little: every float larger or smaller by a relative step of random size."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

ROUNDOFF = {
    torch.float64: 2.0**-53,
    torch.float32: 2.0**-24,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
    torch.complex64: 2.0**-24,
    torch.complex128: 2.0**-53,
}
"""Unit roundoff of each dtype."""
PERIOD = 61_027
"""Elements after which a perturbation comes again. A prime number, so that rows of any usual length
differ: were a row as long, the rows above one another would all move alike, and their differences
not at all."""


def perturb(inputs: Sequence[Any], draw: int, step: Callable[[Any], float]) -> list[Any]:
    """Copies with every element made larger or smaller by a step or so, each input in its own way:
    were w and b of one place moved alike, their sum would hardly move where it cancels."""
    return [_perturbed(x, draw, place, step(x)) for place, x in enumerate(inputs)]


def _perturbed(value: Any, draw: int, place: int, step: float) -> Any:
    if not isinstance(value, torch.Tensor) or value.dtype not in ROUNDOFF:
        return value.clone() if isinstance(value, torch.Tensor) else value
    copy = value.clone(memory_format=torch.contiguous_format)
    flat = copy.view(-1)
    real = value.abs().dtype if value.is_complex() else value.dtype
    factors = _factors(draw, place, step, real).to(value.device)
    whole = flat.numel() // PERIOD * PERIOD
    flat[:whole].view(-1, PERIOD).mul_(factors)
    flat[whole:].mul_(factors[: flat.numel() - whole])
    return copy


@functools.lru_cache(maxsize=64)  # half a megabyte each
def _factors(draw: int, place: int, step: float, dtype: torch.dtype) -> torch.Tensor:
    """1 + step or 1 - step at random, the step itself between a half and three halves of `step`."""
    generator = torch.Generator().manual_seed((place << 8) + draw + 1)
    signs = torch.randint(0, 2, (PERIOD,), generator=generator).to(torch.float64)
    sizes = torch.rand(PERIOD, generator=generator, dtype=torch.float64) + 0.5
    return (1 + step * sizes * (2 * signs - 1)).to(dtype)


def nudge(value: Any) -> float:
    """A relative step that rounding of its dtype does not swallow."""
    coarse = ROUNDOFF.get(value.dtype, 0.0) if isinstance(value, torch.Tensor) else 0.0
    return max(2.0**-12, 4 * coarse)
