"""Norms of images, whose statistics are taken over some axes: their cards' formulas, inputs, cost.

x is (b, c, h, w), the weight w and the bias b have a value a channel; mean and var are those of the
values along `over`, and

    y = (x - mean) rstd w + b                            rstd = 1 / sqrt(var + 1e-5)
    dx = rstd (g - mean(g) - h mean(g h))                h = (x - mean) rstd, g = dy w
    dw = sum dy h, db = sum dy                           over all but the channel
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from assay.inputs import dtype_of
from assay.op import Op

from .launching import widened

CASES = [
    dict(b=2, c=1, h=2, w=2, dtype="float32"),
    dict(b=3, c=5, h=7, w=11, dtype="float16"),
    dict(b=4, c=6, h=14, w=14, dtype="float32"),
    dict(b=4, c=6, h=14, w=14, dtype="bfloat16"),
    dict(b=64, c=32, h=56, w=56, dtype="float32"),
    dict(b=64, c=32, h=56, w=56, dtype="bfloat16"),
]


def inputs(make, b, c, h, w, dtype):
    x = make.normal(b, c, h, w, dtype=dtype, mean=0.5)
    return x, make.normal(c, dtype=dtype, mean=1, std=0.2), make.normal(c, dtype=dtype)


def statistics(x: torch.Tensor, over: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and rstd, broadcast along `over`."""
    mean = x.mean(over, keepdim=True)
    return mean, ((x - mean).square().mean(over, keepdim=True) + 1e-5).rsqrt()


def norm(name: str, over: tuple[int, ...], supports: Callable[..., Any]) -> Op:
    """The operator `name`: inputs x, w, b, statistics over these axes."""

    def reference(x, w, b):
        kind = x.dtype
        x, w, b = widened(x, w, b)
        mean, rstd = statistics(x, over)
        return ((x - mean) * rstd * w[:, None, None] + b[:, None, None]).to(kind)

    return Op(
        name,
        reference,
        inputs,
        shapes={"x": "b c h w", "w": "c", "b": "c"},
        flops=lambda b, c, h, w: 8 * b * c * h * w,
        bytes=lambda b, c, h, w, dtype: (2 * b * c * h * w + 2 * c) * dtype_of(dtype).itemsize,
        supports=supports,
        # Squares that overflow; and PyTorch's own, which multiplies by w before it subtracts.
        excludes=("x:huge", "w:inf"),
        cases=CASES,
    )


def gradient(op: Op, over: tuple[int, ...]) -> Op:
    """Its gradient: inputs dy and the saved x and w."""

    def formula(dy, x, w):
        kind = x.dtype
        dy, x, w = widened(dy, x, w)
        mean, rstd = statistics(x, over)
        h, g = (x - mean) * rstd, dy * w[:, None, None]
        dx = rstd * (g - g.mean(over, keepdim=True) - h * (g * h).mean(over, keepdim=True))
        return dx.to(kind), (dy * h).sum((0, 2, 3)).to(kind), dy.sum((0, 2, 3)).to(kind)

    return op.gradient(
        formula,
        saves=("x", "w"),
        wrt=("x", "w", "b"),
        excludes=("dy:inf", "dy:masked"),  # sums of it are moved to the mean: inf - inf
        flops=lambda b, c, h, w: 15 * b * c * h * w,
        bytes=lambda b, c, h, w, dtype: (3 * b * c * h * w + 3 * c) * dtype_of(dtype).itemsize,
    )
