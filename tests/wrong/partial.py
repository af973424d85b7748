"""Squares of which a program covers only BLOCK columns of its row: `not written`, with a map.

With 1,024 they are right, and run first: what that left in an output must not complete the other.
"""

import triton
import triton.language as tl
from numba import cuda

import assay

EXPECT = {
    "triton/partial BLOCK=128": ("not written", "2,612 of 3,124 elements of output 0, first at [0"),
    "numba/partial BLOCK=128": ("not written", "2,612 of 3,124 elements of output 0, first at [0"),
    "cuda/partial BLOCK=128": ("not written", "2,612 of 3,124 elements of output 0, first at [0"),
}
IDS = "X01 X02 A18"
TWIN = {
    "triton/partial BLOCK=128": "triton/whole BLOCK=128",
    "numba/partial BLOCK=128": "numba/whole BLOCK=128",
    "cuda/partial BLOCK=128": "cuda/whole BLOCK=128",
}
BLOCKS = [1024, 128]


def inputs(make, m, n):
    return (make.normal(m, n),)


op = assay.Op("squared", lambda x: x * x, inputs, cases=[dict(m=4, n=781)])


@triton.jit
def partial_triton(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * n + i
    v = tl.load(x + at, i < n)
    tl.store(y + at, v * v, i < n)


@triton.jit
def whole_triton(x, y, n, BLOCK: tl.constexpr):
    for begin in range(0, n, BLOCK):
        i = begin + tl.arange(0, BLOCK)
        at = tl.program_id(0) * n + i
        v = tl.load(x + at, i < n)
        tl.store(y + at, v * v, i < n)


@cuda.jit
def partial_numba(x, y):
    row, i = cuda.blockIdx.x, cuda.threadIdx.x
    if i < x.shape[1]:
        y[row, i] = x[row, i] * x[row, i]


@cuda.jit
def whole_numba(x, y):
    row, i = cuda.blockIdx.x, cuda.threadIdx.x
    while i < x.shape[1]:
        y[row, i] = x[row, i] * x[row, i]
        i += cuda.blockDim.x


@op.launcher("triton/partial", knobs={"BLOCK": BLOCKS})
def by_triton_partial(y, x, BLOCK):
    partial_triton[(x.shape[0],)](x, y, x.shape[1], BLOCK)


@op.launcher("triton/whole", knobs={"BLOCK": BLOCKS})
def by_triton(y, x, BLOCK):
    whole_triton[(x.shape[0],)](x, y, x.shape[1], BLOCK)


@op.launcher("numba/partial", knobs={"BLOCK": BLOCKS})
def by_numba_partial(y, x, BLOCK):
    partial_numba[x.shape[0], BLOCK](x, y)


@op.launcher("numba/whole", knobs={"BLOCK": BLOCKS})
def by_numba(y, x, BLOCK):
    whole_numba[x.shape[0], BLOCK](x, y)


@op.launcher("cuda/partial", source="partial.cu", knobs={"BLOCK": BLOCKS})
def by_cuda_partial(k, y, x, BLOCK):
    k["partial"](grid=x.shape[0], block=BLOCK)(y, x, x.shape[1])


@op.launcher("cuda/whole", source="partial.cu", knobs={"BLOCK": BLOCKS})
def by_cuda(k, y, x, BLOCK):
    k["whole"](grid=x.shape[0], block=BLOCK)(y, x, x.shape[1])
