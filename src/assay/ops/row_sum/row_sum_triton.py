"""Sums in Triton: a program a row, walked BLOCK elements at a time; or partial sums of everything.

Each of the BLOCK lanes keeps a sum of its own in float32 (float64 for float64); lanes are added
once, at the end.

shapes  x: (rows, n) or n elements, contiguous; y: rows elements or one; partial: one a program
bytes   rows * n * itemsize
FLOPs   rows * n
"""

import triton
import triton.language as tl

from ..pointwise_triton import wide


@triton.jit
def kernel(y, x, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # row * n may pass 2**31
    dtype: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    columns = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], dtype)
    for start in range(0, n, BLOCK):
        at = start + columns
        sums += wide(tl.load(x + row * n + at, mask=at < n, other=0))
    tl.store(y + row, tl.sum(sums, 0).to(y.dtype.element_ty))


@triton.jit
def partial_kernel(partial, x, n, BLOCK: tl.constexpr):
    me = tl.program_id(0)
    sums = tl.zeros([BLOCK], partial.dtype.element_ty)
    for tile in range(me, tl.cdiv(n, BLOCK), tl.num_programs(0)):
        at = tile * tl.full([BLOCK], BLOCK, tl.int64) + tl.arange(0, BLOCK)  # may pass 2**31
        sums += wide(tl.load(x + at, mask=at < n, other=0))
    tl.store(partial + me, tl.sum(sums, 0))


@triton.jit
def total_kernel(y, partial, count, BLOCK: tl.constexpr):
    sums = tl.zeros([BLOCK], partial.dtype.element_ty)
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        sums += tl.load(partial + at, mask=at < count, other=0)
    tl.store(y, tl.sum(sums, 0).to(y.dtype.element_ty))
