"""concat: y = [a, b], two matrices side by side, along the last dimension.

A copy, whose second half starts wherever the first ends: a row of b lands at an address that is a
multiple of 16 bytes only if the width of a is. A block copies a piece of one row, so that nothing
has to be divided for each element.
"""

import torch

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import blocks


def reference(a, b):
    return torch.cat((a, b), -1)


def inputs(make, rows, p, q, dtype):
    if dtype_of(dtype).is_floating_point:
        return make.normal(rows, p, dtype=dtype), make.normal(rows, q, dtype=dtype)
    return tuple(make.integers(rows, n, low=-100, high=100, dtype=dtype) for n in (p, q))


concat: Op = Op(
    "concat",
    reference,
    inputs,
    shapes={"a": "rows m", "b": "rows n"},
    flops=lambda rows, p, q: 0,
    bytes=lambda rows, p, q, dtype: 2 * rows * (p + q) * dtype_of(dtype).itemsize,
    cases=[
        dict(rows=1, p=1, q=1, dtype="float32"),
        dict(rows=7, p=33, q=20, dtype="int8"),
        dict(rows=7, p=40, q=24, dtype="float16"),
        dict(rows=7, p=33, q=20, dtype="float64"),
        dict(rows=20, p=64, q=100, dtype="float32"),
        dict(rows=20, p=64, q=100, dtype="bfloat16"),
        dict(rows=4096, p=2048, q=2048, dtype="float32"),
    ],
)


def formula(dy, a):
    p = a.shape[-1]
    return dy[:, :p].contiguous(), dy[:, p:].contiguous()


# Of a it needs the width alone.
concat_grad = concat.gradient(formula, saves="a", wrt=("a", "b"))

BLOCK, UNROLL = 128, 2


@concat.launcher("cuda/naive", source="concat.cu")
def by_cuda_naive(k, y, a, b):
    p, n = a.shape[1], y.numel()
    if n:
        kernel = k[f"concat_naive<{k.type(a)}>"]
        kernel(grid=blocks(n, BLOCK), block=BLOCK, shared=0)(y, a, b, n, p, b.shape[1])


@concat.launcher("cuda/vectorised", source="concat.cu")
def by_cuda_vectorised(k, y, a, b):
    rows, p = a.shape
    if y.numel():
        pieces = blocks(y.shape[1], BLOCK * UNROLL * (16 // a.element_size()))
        kernel = k[f"concat_vectorised<{k.type(a)}, {BLOCK}, {UNROLL}>"]
        kernel(grid=rows * pieces, block=BLOCK, shared=0)(y, a, b, p, b.shape[1], pieces)


@concat.launcher("triton", knobs={"BLOCK": [1024]})
def by_triton(y, a, b, BLOCK):
    from .concat_triton import kernel

    rows, p = a.shape
    if y.numel():
        kernel[(rows * blocks(y.shape[1], BLOCK),)](y, a, b, p, b.shape[1], BLOCK)
