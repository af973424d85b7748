"""polynomial: y = c[0] + c[1] x + c[2] x^2 + ..., for every element of x.

Horner's rule, from the highest coefficient down: y = (c[2] x + c[1]) x + c[0]. One multiplication
and one addition a term, which a GPU does as one fused operation; no power is computed. The
polynomial of the notes, x^2 + x + 1, has the coefficients 1, 1, 1.

Its gradient (in gradient.py) is dx = dy p'(x); the coefficients are taken as given.
"""

import torch

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import blocks, numba_has, numpy_has, tile_of


def reference(x, c):
    y = c[-1].expand_as(x)
    for k in range(len(c) - 2, -1, -1):
        y = y * x + c[k]
    return y.clone()


def inputs(make, n, terms, dtype):
    return make.normal(n, dtype=dtype), make.normal(terms, dtype=dtype)


polynomial: Op = Op(
    "polynomial",
    reference,
    inputs,
    shapes={"x": "...", "c": "terms"},
    flops=lambda n, terms: 2 * n * max(0, terms - 1),
    bytes=lambda n, terms, dtype: (2 * n + terms) * dtype_of(dtype).itemsize,
    excludes=("c:huge",),  # whether a step overflows hangs on whether its product is rounded first
    supports=lambda terms: terms > 0 or "a polynomial has at least one coefficient",
    cases=[
        dict(n=1, terms=3, dtype="float32"),
        dict(n=1000, terms=3, dtype="float16"),
        dict(n=1001, terms=4, dtype="float64"),
        dict(n=10_007, terms=3, dtype="float32"),
        dict(n=10_007, terms=5, dtype="bfloat16"),
        dict(n=1 << 24, terms=3, dtype="float32"),
        dict(n=1 << 24, terms=3, dtype="bfloat16"),
    ],
)


@polynomial.variant("python", when=numpy_has)
def by_numpy(x, c):
    import numpy as np

    a, y = x.numpy(), np.full(tuple(x.shape), c[-1].item(), x.numpy().dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(len(c) - 2, -1, -1):
            y = y * a + c[k].numpy()
    return torch.from_numpy(y)


@polynomial.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def by_triton(y, x, c, BLOCK):
    from .polynomial_triton import kernel

    n = x.numel()
    if n:
        kernel[(blocks(n, BLOCK),)](y, x, c, n, len(c), BLOCK)


@polynomial.launcher("cuda/naive", source="polynomial.cu")
def by_cuda_naive(k, y, x, c):
    n = x.numel()
    if n:
        k[f"polynomial_naive<{k.type(x)}>"](grid=blocks(n, 256), block=256, shared=0)(
            y, x, c, n, len(c)
        )


@polynomial.launcher("cuda/vectorised", source="polynomial.cu", knobs={"UNROLL": [2, 4]})
def by_cuda_vectorised(k, y, x, c, UNROLL):
    n = x.numel()
    if n:
        built = k[f"polynomial_vectorised<{k.type(x)}, 256, {UNROLL}>"]
        grid = blocks(n, tile_of(x, 256, UNROLL))
        built(grid=grid, block=256, shared=0)(y, x, c, n, len(c))


@polynomial.launcher("extension", source="polynomial_extension.cpp")
def by_extension(k, y, x, c):
    k.polynomial_out(y, x, c)


@polynomial.launcher("numba", when=numba_has)
def by_numba(y, x, c):
    from assay.inputs import dtype_name

    from .polynomial_numba import THREADS, kernel_for

    n = x.numel()
    if n:
        kernel_for(dtype_name(x.dtype))[blocks(n, THREADS), THREADS](y.view(-1), x.view(-1), c)


from .gradient import polynomial_grad as polynomial_grad  # noqa: E402 - made of the Op above
