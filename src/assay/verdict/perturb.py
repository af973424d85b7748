"""Inputs moved a little: every float larger or smaller by a relative step of random size."""

from __future__ import annotations

import functools
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


def perturb(value: Any, draw: int, step: float) -> Any:
    """A copy with every element made larger or smaller by a step or so."""
    if not isinstance(value, torch.Tensor) or value.dtype not in ROUNDOFF:
        return value.clone() if isinstance(value, torch.Tensor) else value
    copy = value.clone(memory_format=torch.contiguous_format)
    flat = copy.view(-1)
    factors = _factors(draw, step, value.abs().dtype if value.is_complex() else value.dtype)
    factors = factors.to(value.device)
    whole = flat.numel() // PERIOD * PERIOD
    flat[:whole].view(-1, PERIOD).mul_(factors)
    flat[whole:].mul_(factors[: flat.numel() - whole])
    return copy


@functools.cache
def _factors(draw: int, step: float, dtype: torch.dtype) -> torch.Tensor:
    """1 + step or 1 - step at random, the step itself between a half and three halves of `step`."""
    generator = torch.Generator().manual_seed(draw + 1)
    signs = torch.randint(0, 2, (PERIOD,), generator=generator).to(torch.float64)
    sizes = torch.rand(PERIOD, generator=generator, dtype=torch.float64) + 0.5
    return (1 + step * sizes * (2 * signs - 1)).to(dtype)


def nudge(value: Any) -> float:
    """A relative step that rounding of its dtype does not swallow."""
    coarse = ROUNDOFF.get(value.dtype, 0.0) if isinstance(value, torch.Tensor) else 0.0
    return max(2.0**-12, 4 * coarse)
