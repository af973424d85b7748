"""row_sum: y[r] = sum_j x[r, j], and sum: y = the sum of all elements.

A sum reads everything and writes next to nothing: it is as fast as memory can be read. Threads add
what they load, lanes of a warp add across it by shuffles, warps of a block by shared memory. Each
level works in float32 (float64 for float64) and in a fixed order, so that equal inputs give equal
bits; the result is rounded once.

One row a block leaves a GPU idle when there are few rows, as for `sum`: there many blocks write
partial sums and one block adds them. Adding them by atomics (cuda/atomics) saves that launch, and
gives up the order.
"""

import torch

from assay.inputs import dtype_name, dtype_of
from assay.op import Op

from ..launching import blocks, numba_has, numpy_has
from ..rows import by_rows, of_rows


def reference(x):
    return x.sum(-1)


def inputs(make, rows, n, dtype):
    return (make.normal(rows, n, dtype=dtype),)


row_sum: Op = Op(
    "row_sum",
    reference,
    inputs,
    shapes={"x": "... n"},
    flops=lambda rows, n: rows * n,
    bytes=lambda rows, n, dtype: rows * (n + 1) * dtype_of(dtype).itemsize,
    deterministic=True,
    excludes=("x:huge",),  # whether their sum overflows on the way hangs on its order
    cases=[
        dict(rows=1, n=1, dtype="float32"),
        dict(rows=3, n=1000, dtype="float16"),
        dict(rows=5, n=129, dtype="float64"),
        dict(rows=64, n=257, dtype="float32"),
        dict(rows=64, n=257, dtype="bfloat16"),
        dict(rows=2, n=100_003, dtype="float32"),
        dict(rows=4096, n=4096, dtype="float32"),
        dict(rows=4096, n=4096, dtype="bfloat16"),
    ],
)


# Of x it needs the shape alone.
row_sum_grad = row_sum.gradient(
    lambda dy, x: dy[..., None].expand_as(x).clone(), saves="x", wrt="x"
)


@row_sum.variant("python", when=numpy_has)
def by_numpy(x):
    import numpy as np

    wide = None if x.dtype is torch.float64 else np.float32
    with np.errstate(invalid="ignore", over="ignore"):
        return torch.from_numpy(x.numpy().sum(-1, dtype=wide).astype(x.numpy().dtype))


@row_sum.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def by_triton(y, x, BLOCK):
    from .row_sum_triton import kernel

    if y.numel():
        kernel[(y.numel(),)](y, x, x.shape[-1], BLOCK, num_warps=8)


@row_sum.launcher("cuda/thread_a_row", source="row_sum.cu")
def by_cuda_thread_a_row(k, y, x):
    rows, n = of_rows(x)
    if rows:
        kernel = k[f"row_sum_thread<{k.type(x)}>"]
        kernel(grid=blocks(rows, 64), block=64, shared=0)(y, x, rows, n)


@row_sum.launcher("cuda/block_a_row", source="row_sum.cu", knobs={"BLOCK": [256, 512]})
def by_cuda_block_a_row(k, y, x, BLOCK):
    rows, n = of_rows(x)
    if rows:
        k[f"row_sum_walked<{k.type(x)}, {BLOCK}>"](grid=rows, block=BLOCK, shared=0)(y, x, rows, n)


@row_sum.launcher("cuda/held", source="row_sum.cu")
def by_cuda_held(k, y, x):
    if y.numel():
        by_rows(k, "row_sum", x, (y, x))


@row_sum.launcher("numba", when=numba_has)
def by_numba(y, x):
    from .row_sum_numba import THREADS, kernel_for

    if y.numel():
        kernel_for(dtype_name(x.dtype))[y.numel(), THREADS](y.view(-1), x.view(of_rows(x)))


from .everything import sum as sum  # noqa: E402 - it is made of the kernels above
from .everything import sum_grad as sum_grad  # noqa: E402
