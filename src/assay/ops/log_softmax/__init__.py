"""log_softmax over the last dimension: y[r, i] = x[r, i] - max_r - log sum_j exp(x[r, j] - max_r).

The logarithm of softmax, without the numbers that exp makes too small to have one. Its gradient is
dx = dy - exp(y) sum_j dy_j, from what the forward wrote.
"""

import torch

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import widened
from ..rows import by_rows, by_tiles, of_rows, short


def reference(x):
    return torch.log_softmax(x, -1)


def inputs(make, rows, n, dtype):
    return (make.normal(rows, n, dtype=dtype, std=3),)


log_softmax: Op = Op(
    "log_softmax",
    reference,
    inputs,
    shapes={"x": "... n"},
    # max, subtract, exp, add, subtract
    flops=lambda rows, n: 5 * rows * n,
    bytes=lambda rows, n, dtype: 2 * rows * n * dtype_of(dtype).itemsize,
    cases=[
        dict(rows=1, n=1, dtype="float32"),
        dict(rows=3, n=1000, dtype="float16"),
        dict(rows=5, n=129, dtype="float64"),
        dict(rows=64, n=257, dtype="float32"),
        dict(rows=64, n=257, dtype="bfloat16"),
        dict(rows=2, n=100_003, dtype="float32"),
        dict(rows=2048, n=4096, dtype="float32"),
        dict(rows=2048, n=4096, dtype="bfloat16"),
    ],
)


def formula(dy, y):
    kind, (dy, y) = y.dtype, widened(dy, y)
    return (dy - torch.exp(y) * dy.sum(-1, keepdim=True)).to(kind)


log_softmax_grad = log_softmax.gradient(
    formula,
    saves="y",
    wrt="x",
    excludes=("dy:huge",),  # whether their sum overflows on the way hangs on its order
    # add, exp, multiply, subtract
    flops=lambda rows, n: 4 * rows * n,
    bytes=lambda rows, n, dtype: 3 * rows * n * dtype_of(dtype).itemsize,
)


@log_softmax.launcher("cuda/held", source="log_softmax.cu")
def by_cuda(k, y, x):
    if x.numel():
        by_rows(k, "log_softmax", x, (y, x))


@log_softmax.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def by_triton(y, x, BLOCK):
    from .log_softmax_triton import kernel

    if x.numel():
        n = x.shape[-1]
        kernel[(x.numel() // n,)](x, y, n, BLOCK, num_warps=8)


@log_softmax.launcher("triton/held", when=short)
def by_triton_held(y, x):
    from .log_softmax_triton import held_kernel

    if x.numel():
        by_tiles(held_kernel, *of_rows(x), (x, y))


@log_softmax_grad.launcher("cuda/held", source="log_softmax.cu")
def gradient_by_cuda(k, dx, dy, y):
    if y.numel():
        by_rows(k, "log_softmax_grad", y, (dx, dy, y), 16)


@log_softmax_grad.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def gradient_by_triton(dx, dy, y, BLOCK):
    from .log_softmax_triton import gradient_kernel

    if y.numel():
        n = y.shape[-1]
        gradient_kernel[(y.numel() // n,)](dy, y, dx, n, BLOCK, num_warps=8)
