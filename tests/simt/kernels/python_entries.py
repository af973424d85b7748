"""Entries of numba_kernels.py and inductor_functions.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import inductor_functions
from .entry import (
    DOUBLE,
    FAST,
    FLOAT,
    FUNCTION,
    Arguments,
    Entry,
    blank,
    integers,
    listed,
    normal,
    uniform,
)

INT32, F64 = torch.int32, torch.float64
N = 1009


def numba(
    kernel: str,
    make: Callable[[int], Arguments],
    reference: Callable[..., Any],
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    **more: Any,
) -> Entry:
    return Entry(
        name=f"numba {kernel}",
        way="numba",
        source="numba_kernels.py",
        kernel=kernel,
        make=make,
        reference=listed(reference),
        grid=(grid,) if isinstance(grid, int) else grid,
        block=(block,) if isinstance(block, int) else block,
        **more,
    )


def inductor(kernel: str, make: Callable[[int], Arguments], **more: Any) -> Entry:
    """The reference is the function itself, in float64."""
    function = getattr(inductor_functions, kernel)

    def reference(args: Arguments) -> list[torch.Tensor]:
        made = function(*(a.double() if a.dtype.is_floating_point else a for a in args))
        return list(made) if isinstance(made, tuple) else [made]

    return Entry(
        name=f"inductor {kernel}",
        way="inductor",
        source="inductor_functions.py",
        kernel=kernel,
        make=make,
        reference=reference,
        outputs=(),
        **more,
    )


def sums(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    padded = torch.zeros(len(y) * 128, dtype=F64)
    padded[: len(x)] = x
    return padded.view(-1, 128).sum(1)


def prices(call: Any, s: torch.Tensor, k: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    root = 0.3 * t.sqrt()
    d1 = ((s / k).log() + (0.02 + 0.045) * t) / root
    phi = torch.special.ndtr
    return s * phi(d1) - k * (-0.02 * t).exp() * phi(d1 - root)


def escapes(y: torch.Tensor, most: int) -> torch.Tensor:
    out = torch.zeros_like(y)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            c, z, k = complex(-2 + 3 * j / y.shape[1], -1 + 2 * i / y.shape[0]), 0j, most
            for step in range(most):
                z = complex(z.real * z.real - z.imag * z.imag, 2 * z.real * z.imag) + c
                if z.real * z.real + z.imag * z.imag > 4:
                    k = step
                    break
            out[i, j] = k
    return out


NUMBA = (
    numba(
        "square",
        lambda s: [blank(N), normal(s, N)],
        lambda y, x: x.square(),
        8,
        128,
    ),
    numba(
        "reduce_sum",
        lambda s: [blank(8), normal(s, N)],
        sums,
        8,
        128,
        tolerance=FLOAT,
        mutate=True,
    ),
    numba(
        "softmax",
        lambda s: [blank(5, 301), normal(s, 5, 301) * 3],
        lambda y, x: x.double().softmax(1),
        5,
        64,
        tolerance=FUNCTION,
        mutate=True,
    ),
    numba(
        "transpose",
        lambda s: [blank(45, 70), normal(s, 70, 45)],
        lambda y, x: x.T,
        (3, 5),
        (16, 16),
        mutate=True,
    ),
    numba(
        "matmul",
        lambda s: [blank(13, 19), normal(s, 13, 21), normal(s + 1, 21, 19)],
        lambda c, a, b: a.double() @ b.double(),
        (3, 2),
        (8, 8),
        tolerance=FLOAT,
        mutate=True,
    ),
    numba(
        "histogram",
        lambda s: [torch.zeros(64, dtype=INT32), integers(s, 0, 64, N)],
        lambda y, x: torch.bincount(x, minlength=64).to(INT32),
        3,
        96,
        mutate=True,
    ),
    numba(
        "largest_three",
        lambda s: [blank(3, 77), normal(s, 20, 77)],
        lambda y, x: x.sort(0, descending=True)[0][:3],
        3,
        32,
    ),
    numba(
        "warp_sum",
        lambda s: [torch.zeros(1), normal(s, 192)],
        lambda y, x: x.double().sum(0, keepdim=True),
        2,
        96,
        tolerance=FLOAT,
    ),
    numba(
        "black_scholes",
        lambda s: [
            blank(301, dtype=F64),
            *(uniform(s + k, 0.5, 2, 301).double() for k in range(3)),
        ],
        prices,
        3,
        128,
        tolerance=DOUBLE,
    ),
    numba(
        "mandelbrot",
        lambda s: [blank(23, 37, dtype=INT32), 50],
        escapes,
        (2, 2),
        (16, 8),
    ),
    numba(
        "scan",
        lambda s: [blank(64, dtype=INT32), integers(s, -99, 99, 64)],
        lambda y, x: x.cumsum(0).to(INT32),
        1,
        64,
        mutate=True,
    ),
    numba(
        "strided",
        lambda s: [blank(20, 10), normal(s, 20, 40)[:, ::4]],
        lambda y, x: x * 2,
        (3, 2),
        (8, 8),
    ),
)
INDUCTOR = (
    inductor("softmax", lambda s: [normal(s, 13, 301)], tolerance=FAST),
    inductor(
        "gelu_layernorm",
        lambda s: [normal(s, 7, 301), normal(s + 1, 301), normal(s + 2, 301)],
        tolerance=FAST,
    ),
    inductor(
        "pointwise_chain", lambda s: [normal(s, 37, 41), normal(s + 1, 37, 41)], tolerance=FAST
    ),
    inductor("mean_variance", lambda s: [normal(s, 7, 1009) + 2], tolerance=FAST),
    inductor(
        "cross_entropy",
        lambda s: [normal(s, 9, 101), integers(s, 0, 101, 9, dtype=torch.int64)],
        tolerance=FAST,
    ),
    inductor("cumulative", lambda s: [normal(s, 5, 203)], tolerance=FAST),
)
ENTRIES = (*NUMBA, *INDUCTOR)
