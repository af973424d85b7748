"""sum: y = the sum of all elements of x: blocks write partial sums, and one block adds them."""

import torch

from assay.inputs import dtype_name, dtype_of
from assay.op import Op

from ..launching import accumulator, blocks, multiprocessors, numba_has, tile_of

BLOCK, UNROLL = 1024, 4
EACH = 2
"""Blocks at most on each multiprocessor: all that fit at once."""


def reference(x):
    return x.sum()


def inputs(make, n, dtype):
    # Not about 0: the sum of a part that is left out could be next to nothing by chance. And of a
    # size of their own: the sums of many alike are so close that rounding alone could part them.
    size = float(make.uniform(1, low=0.5, high=2.0))
    return (make.normal(n, dtype=dtype, mean=0.25 * size, std=size),)


sum: Op = Op(
    "sum",
    reference,
    inputs,
    shapes={"x": "..."},
    flops=lambda n: n,
    bytes=lambda n, dtype: (n + 1) * dtype_of(dtype).itemsize,
    excludes=("x:huge",),  # whether their sum overflows on the way hangs on its order
    cases=[
        dict(n=1, dtype="float32"),
        dict(n=1000, dtype="float16"),
        dict(n=1001, dtype="float64"),
        dict(n=10_007, dtype="float32"),
        dict(n=10_007, dtype="bfloat16"),
        dict(n=1 << 24, dtype="float32"),
        dict(n=1 << 24, dtype="bfloat16"),
    ],
)


# Of x it needs the shape alone.
sum_grad = sum.gradient(lambda dy, x: dy.expand_as(x).clone(), saves="x", wrt="x")


@sum.launcher(
    "cuda/atomics",
    source="row_sum.cu",
    when=lambda dtype: dtype in ("float32", "float64") or "adds to y, which would round each time",
)
def by_cuda_atomics(k, y, x):
    n = x.numel()
    y.zero_()
    grid = max(1, min(EACH * multiprocessors(x), blocks(n, tile_of(x, BLOCK, UNROLL))))
    kernel = k[f"sum_atomic<{k.type(x)}, {BLOCK}, {UNROLL}>"]
    kernel(grid=grid, block=BLOCK, shared=0)(y, x, n)


@sum.launcher("cuda/two_stages", source="row_sum.cu")
def by_cuda_two_stages(k, y, x):
    n = x.numel()
    grid = max(1, min(EACH * multiprocessors(x), blocks(n, tile_of(x, BLOCK, UNROLL))))
    partial = torch.empty(grid, dtype=accumulator(x), device=x.device)
    first = k[f"sum_partial<{k.type(x)}, {BLOCK}, {UNROLL}>"]
    first(grid=grid, block=BLOCK, shared=0)(partial, x, n)
    last = k[f"sum_of_partials<{k.type(x)}, {BLOCK}>"]
    last(grid=1, block=BLOCK, shared=0, early=True)(y, partial, grid)


@sum.launcher("triton", knobs={"BLOCK": [4096]})
def by_triton(y, x, BLOCK):
    from .row_sum_triton import partial_kernel, total_kernel

    n = x.numel()
    grid = max(1, min(2 * EACH * multiprocessors(x), blocks(n, BLOCK)))
    partial = torch.empty(grid, dtype=accumulator(x), device=x.device)
    partial_kernel[(grid,)](partial, x, n, BLOCK, num_warps=8)
    total_kernel[(1,)](y, partial, grid, 1024)


@sum.launcher("numba", when=numba_has)
def by_numba(y, x):
    from .row_sum_numba import THREADS, kernel_for, partial_kernel_for

    grid = max(1, min(EACH * multiprocessors(x), blocks(x.numel(), 16 * THREADS)))
    partial = torch.empty(grid, dtype=accumulator(x), device=x.device)
    partial_kernel_for(dtype_name(x.dtype))[grid, THREADS](partial, x.view(-1))
    kernel_for(dtype_name(x.dtype))[1, THREADS](y.view(1), partial.view(1, grid))
