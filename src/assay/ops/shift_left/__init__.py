"""shift_left: x[i] = x[i + 1] in place, for all but the last element, which stays.

The notes' example of a race: a thread that writes x[i] may come before the one that still has to
read it. Every thread must have read before any writes, and a barrier, `__syncthreads()`, says so;
but it holds within a block alone.

cuda/one_block goes through the array piece by piece. cuda/blocks shares it among blocks: as one
block can't wait for another within a kernel, a first kernel keeps the element that each block will
need of its right neighbour, and the second shifts. cuda/vectorised moves vectors of 16 bytes so.
"""

import torch

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import blocks, tile_of


def reference(x):
    return torch.cat((x[1:], x[-1:]))


def inputs(make, n, dtype):
    if dtype_of(dtype).is_floating_point:
        return (make.normal(n, dtype=dtype),)
    return (make.integers(n, low=-1000, high=1000, dtype=dtype),)


shift_left: Op = Op(
    "shift_left",
    reference,
    inputs,
    shapes={"x": "n"},
    mutates=("x",),
    flops=lambda n: 0,
    bytes=lambda n, dtype: 2 * n * dtype_of(dtype).itemsize,
    deterministic=True,
    cases=[
        dict(n=2, dtype="int32"),
        dict(n=1000, dtype="int32"),
        dict(n=10_007, dtype="float32"),
        dict(n=1000, dtype="bfloat16"),
        dict(n=1000, dtype="float16"),
        dict(n=1000, dtype="float64"),
        dict(n=1 << 20, dtype="int32"),
    ],
)

BLOCK = 512
THREADS, VECS = 256, 2


@shift_left.launcher("cuda/one_block", source="shift_left.cu")
def by_cuda_one_block(k, x):
    n = x.numel()
    if n:
        k[f"shift_left_block<{k.type(x)}, {BLOCK}>"](grid=1, block=BLOCK, shared=0)(x, n)


def edges_of(k, x, tile):
    """Of each tile the first element of its right neighbour, which a first kernel keeps."""
    n = x.numel()
    count = blocks(n, tile)
    edges = torch.empty(count, dtype=x.dtype, device=x.device)
    kernel = k[f"shift_left_edges<{k.type(x)}>"]
    kernel(grid=blocks(count, 256), block=256, shared=0)(edges, x, n, count, tile)
    return edges


@shift_left.launcher("cuda/blocks", source="shift_left.cu")
def by_cuda_blocks(k, x):
    n = x.numel()
    if n:
        edges = edges_of(k, x, BLOCK)
        kernel = k[f"shift_left_blocks<{k.type(x)}, {BLOCK}>"]
        kernel(grid=blocks(n, BLOCK), block=BLOCK, shared=0)(x, edges, n)


@shift_left.launcher("cuda/vectorised", source="shift_left.cu")
def by_cuda_vectorised(k, x):
    n = x.numel()
    if n:
        tile = tile_of(x, THREADS, VECS)
        edges = edges_of(k, x, tile)
        kernel = k[f"shift_left_vectors<{k.type(x)}, {THREADS}, {VECS}>"]
        kernel(grid=blocks(n, tile), block=THREADS, shared=0, early=True)(x, edges, n)


@shift_left.launcher("triton", knobs={"BLOCK": [1024]})
def by_triton(x, BLOCK):
    from .shift_left_triton import edges_kernel, kernel

    n = x.numel()
    if n:
        grid = blocks(n, BLOCK)
        edges = torch.empty(grid, dtype=x.dtype, device=x.device)
        edges_kernel[(blocks(grid, 256),)](edges, x, n, grid, BLOCK, 256)
        kernel[(grid,)](x, edges, n, BLOCK)
