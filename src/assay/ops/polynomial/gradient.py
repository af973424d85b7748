"""The gradient of polynomial: dx = dy p'(x), p'(x) = c[1] + 2 c[2] x + 3 c[3] x^2 + ...

It saves x and the coefficients, and computes p' by Horner's rule too.
"""

import torch

from assay.inputs import dtype_of

from ..launching import blocks, tile_of
from . import polynomial


def formula(dy, x, c):
    if len(c) == 1:
        return torch.zeros_like(dy)
    slope = ((len(c) - 1) * c[-1]).expand_as(x)
    for k in range(len(c) - 2, 0, -1):
        slope = slope * x + k * c[k]
    return dy * slope


polynomial_grad = polynomial.gradient(
    formula,
    saves=("x", "c"),
    wrt="x",
    flops=lambda n, terms: n * max(0, 3 * terms - 4),
    bytes=lambda n, terms, dtype: (3 * n + terms) * dtype_of(dtype).itemsize,
)


@polynomial_grad.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def by_triton(dx, dy, x, c, BLOCK):
    from .polynomial_triton import gradient_kernel

    n = x.numel()
    if n:
        gradient_kernel[(blocks(n, BLOCK),)](dx, dy, x, c, n, len(c), BLOCK)


@polynomial_grad.launcher("cuda/vectorised", source="polynomial.cu", knobs={"UNROLL": [1, 2]})
def by_cuda(k, dx, dy, x, c, UNROLL):
    n = x.numel()
    if n:
        built = k[f"polynomial_grad_vectorised<{k.type(x)}, 256, {UNROLL}>"]
        grid = blocks(n, tile_of(x, 256, UNROLL))
        built(grid=grid, block=256, shared=0)(dx, dy, x, c, n, len(c))


@polynomial_grad.launcher("extension", source="polynomial_extension.cpp")
def by_extension(k, dx, dy, x, c):
    k.polynomial_grad_out(dx, dy, x, c)
