"""The reference in poorer arithmetic: what a kernel of a lower precision class would answer.

It runs in float64, and rounds only where such a kernel does: the operands of its products (a
tensor core that takes tf32 or bfloat16), or each partial sum (a running total in bfloat16).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..op import Op
from .reference import outputs_of, widen

MOST_STEPS = 4096
"""Terms that are added one by one; of more, neighbours are first added exactly."""
PRODUCTS = {
    "mm": (0, 1),
    "bmm": (0, 1),
    "addmm": (1, 2),
    "baddbmm": (1, 2),
    "dot": (0, 1),
    "mv": (0, 1),
    "convolution": (0, 1),
}
"""Which arguments an aten operation multiplies and adds up."""


def rounded(x: torch.Tensor, name: str) -> torch.Tensor:
    """The values rounded to the nearest of a format, in the dtype that they came in."""
    if not x.is_floating_point():
        return x
    if name != "tf32":
        return x.to(getattr(torch, name)).to(x.dtype)
    bits = x.to(torch.float32).view(torch.int32)
    near = (bits + 0x0FFF + ((bits >> 13) & 1)) & ~0x1FFF
    return torch.where(x.isfinite(), near.view(torch.float32).to(x.dtype), x)


def with_rounded_inputs(op: Op, inputs: tuple[Any, ...], name: str) -> list[torch.Tensor]:
    """The truth for inputs that were first rounded to a format."""
    with torch.no_grad():
        return outputs_of(op, [_rounded_wide(x, name) for x in inputs])


def _rounded_wide(value: Any, name: str) -> Any:
    wide = widen(value)
    return rounded(wide, name) if isinstance(wide, torch.Tensor) else wide


def with_poorer(
    op: Op, inputs: tuple[Any, ...], *, products: str = "", sums: str = ""
) -> list[torch.Tensor] | None:
    """The truth with products of rounded operands, or with sums whose total is kept rounded.

    None if the reference has neither, as far as its operations tell.
    """
    with torch.no_grad(), poorer(products, sums) as mode:
        made = outputs_of(op, [widen(x) for x in inputs])
    return made if mode.met else None


class poorer(TorchDispatchMode):
    """Puts rounded products, or rounded running totals, in the place of exact ones."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # as in reductions.watching

    def __init__(self, products: str, sums: str):
        super().__init__()
        self.products, self.sums, self.met = products, sums, False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._overloadpacket.__name__
        if self.products and name in PRODUCTS:
            self.met = True
            given = list(args)
            for place in PRODUCTS[name]:
                given[place] = rounded(given[place], self.products)
            args = tuple(given)
        made = func(*args, **kwargs)
        if self.sums and name in SUMS and _floats(args, made):
            total = SUMS[name](getattr(torch, self.sums), made, *args, **kwargs)
            if total is not None:
                self.met = True
                return total.to(made.dtype).reshape(made.shape)
        return made


def _floats(args: tuple[Any, ...], made: Any) -> bool:
    return isinstance(made, torch.Tensor) and made.is_floating_point() and made.numel() > 0


def _sum(
    dtype: torch.dtype, made: torch.Tensor, x: torch.Tensor, dim: Any = None, *_: Any, **__: Any
) -> torch.Tensor | None:
    dims = [dim] if isinstance(dim, int) else list(dim or range(x.dim()))
    if math.prod(x.shape[d] for d in dims) < 2:
        return None
    kept = [d for d in range(x.dim()) if d not in {d % x.dim() for d in dims}]
    order = [*(d % x.dim() for d in dims), *kept]
    terms = x.permute(order).reshape(-1, *(x.shape[d] for d in kept))
    return _added_up(terms, dtype)


def _mean(
    dtype: torch.dtype, made: torch.Tensor, x: torch.Tensor, dim: Any = None, *_: Any, **__: Any
) -> torch.Tensor | None:
    total = _sum(dtype, made, x, dim)
    return None if total is None else total.to(made.dtype) / (x.numel() // made.numel())


def _softmax(
    dtype: torch.dtype, made: torch.Tensor, x: torch.Tensor, dim: int, *_: Any
) -> torch.Tensor | None:
    e = (x - x.amax(dim, keepdim=True)).exp()
    total = _sum(dtype, made, e, dim)
    return None if total is None else e / total.unsqueeze(dim)


def _product(
    dtype: torch.dtype, made: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *_: Any
) -> torch.Tensor | None:
    length = a.shape[-1]
    if length < 2:
        return None
    steps = min(length, MOST_PRODUCTS)
    total = torch.zeros_like(made, dtype=dtype)
    for left, right in zip(a.chunk(steps, -1), b.chunk(steps, -2)):
        total = (total.to(a.dtype) + left @ right).to(dtype)
    return total


def _added_product(
    dtype: torch.dtype,
    made: torch.Tensor,
    c: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    beta: float = 1.0,
    alpha: float = 1.0,
) -> torch.Tensor | None:
    total = _product(dtype, made, a, b)
    if total is None:
        return None
    return beta * c + alpha * total.to(made.dtype)


MOST_PRODUCTS = 256
"""Steps of a product: after each, a block of the reduced dimension is in the rounded total."""
SUMS: dict[str, Callable[..., torch.Tensor | None]] = {
    "sum": _sum,
    "mean": _mean,
    "_softmax": _softmax,
    "mm": _product,
    "bmm": _product,
    "addmm": _added_product,
    "baddbmm": _added_product,
}


def _added_up(terms: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The sum over the first dimension, term after term, each partial sum rounded to a dtype."""
    group = -(-len(terms) // MOST_STEPS)
    if group > 1:
        terms = torch.stack([part.sum(0) for part in terms.split(group)])
    terms = terms.to(dtype)
    total = torch.zeros_like(terms[0])
    for term in terms:
        total = total + term
    return total
