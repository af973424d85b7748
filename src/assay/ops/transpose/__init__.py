"""transpose: y[j, i] = x[i, j] of a matrix, written out.

No arithmetic: it moves the bytes of a copy, and the question is only how near to a copy it comes.
Rows of x are columns of y, so a thread that reads beside its neighbours writes far from them. A
tile in shared memory turns that round: it is read along rows of x and written along rows of y.

The rungs: cuda/naive writes scattered; cuda/tiled has all 32 lanes of a warp read one bank of
shared memory; cuda/padded moves each row of the tile one bank on; cuda/vectorised moves 16 bytes at
a time on both sides, by transposing small squares in registers.
"""

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import blocks, multiprocessors, numba_has, numpy_has


def reference(x):
    return x.t().contiguous()


def inputs(make, m, n, dtype):
    if dtype_of(dtype).is_floating_point:
        return (make.normal(m, n, dtype=dtype),)
    return (make.integers(m, n, low=-100, high=100, dtype=dtype),)


transpose: Op = Op(
    "transpose",
    reference,
    inputs,
    shapes={"x": "m n"},
    flops=lambda m, n: 0,
    bytes=lambda m, n, dtype: 2 * m * n * dtype_of(dtype).itemsize,
    cases=[
        dict(m=1, n=1, dtype="float32"),
        dict(m=65, n=33, dtype="int8"),
        dict(m=72, n=136, dtype="float16"),
        dict(m=40, n=66, dtype="float64"),
        dict(m=257, n=129, dtype="float32"),
        dict(m=256, n=200, dtype="bfloat16"),
        dict(m=1823, n=781, dtype="float32"),
        dict(m=4096, n=4096, dtype="float32"),
        dict(m=4096, n=4096, dtype="bfloat16"),
    ],
)


transpose_grad = transpose.gradient(lambda dy: dy.t().contiguous(), wrt="x")


@transpose.variant("python", when=numpy_has)
def by_numpy(x):
    import numpy as np
    import torch

    return torch.from_numpy(np.array(x.numpy().T, order="C"))


@transpose.launcher("triton", knobs={"TILE": [64, 32]})
def by_triton(y, x, TILE):
    from .transpose_triton import kernel

    m, n = x.shape
    if x.numel():
        kernel[(blocks(m, TILE) * blocks(n, TILE),)](y, x, m, n, TILE, num_warps=TILE // 8)


def in_tiles(k, name, y, x, tile, threads):
    """One block a tile; the grid is flat, because in y it could have 65,535 blocks at most."""
    m, n = x.shape
    if x.numel():
        grid = blocks(m, tile) * blocks(n, tile)
        k[f"{name}<{k.type(x)}>"](grid=grid, block=threads, shared=0)(y, x, m, n)


@transpose.launcher("cuda/naive", source="transpose.cu")
def by_cuda_naive(k, y, x):
    in_tiles(k, "transpose_naive", y, x, 32, (32, 8))


@transpose.launcher("cuda/tiled", source="transpose.cu")
def by_cuda_tiled(k, y, x):
    in_tiles(k, "transpose_tiled", y, x, 32, (32, 8))


@transpose.launcher("cuda/padded", source="transpose.cu")
def by_cuda_padded(k, y, x):
    in_tiles(k, "transpose_padded", y, x, 32, (32, 8))


@transpose.launcher("cuda/vectorised", source="transpose.cu")
def by_cuda_vectorised(k, y, x):
    (m, n), side = x.shape, min(8, 16 // x.element_size())
    if not x.numel():
        return

    def tiles(across):
        """Blocks: a thread has a square of as many elements a side as a vector holds, 8 at most."""
        return blocks(m, across * side) * blocks(n, across * side)

    across = 16 if tiles(16) >= 2 * multiprocessors(x) else 8
    kernel = k[f"transpose_vectorised<{k.type(x)}, {across}>"]
    kernel(grid=tiles(across), block=across * across, shared=0)(y, x, m, n)


@transpose.launcher("numba", when=numba_has)
def by_numba(y, x):
    from assay.inputs import dtype_name

    from .transpose_numba import ROWS, TILE, kernel_for

    m, n = x.shape
    if x.numel():
        grid = blocks(m, TILE) * blocks(n, TILE)
        kernel_for(dtype_name(x.dtype))[grid, (TILE, ROWS)](y, x)
