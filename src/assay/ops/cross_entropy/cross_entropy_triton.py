"""cross_entropy, its gradient, or both in Triton.

kernel       one program a row of any length, walked BLOCK elements at a time
held_kernel  ROWS whole rows of up to COLUMNS elements by a program, in its registers: read once

LOSS writes the loss; GRAD writes dx, times dloss unless LOSS is asked for too: then the gradient
is that of the sum of losses.

shapes  x, dx: (rows, n), contiguous, of one floating dtype; loss, dloss, target: rows
bytes   rows * n * itemsize for the loss, 2 * that with dx: the second walk finds the row in a cache
FLOPs   4 * rows * n for the loss, 6 with dx, counting exp as one
"""

import triton
import triton.language as tl

from ..log_softmax.log_softmax_triton import held_log_of_sum, log_of_sum
from ..pointwise_triton import tile, wide


@triton.jit
def kernel(
    loss, dx, dloss, x, target, n, LOSS: tl.constexpr, GRAD: tl.constexpr, BLOCK: tl.constexpr
):
    dtype: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64)  # row * n may pass 2**31
    x += row * n
    right = tl.load(target + row)
    columns = tl.arange(0, BLOCK)

    shift, log, sum = log_of_sum(x, n, BLOCK)

    if LOSS:
        value = log - (wide(tl.load(x + right)) - shift)
        tl.store(loss + row, value.to(loss.dtype.element_ty))
    if GRAD:
        factor = tl.full([], 1, dtype)
        if not LOSS:
            factor = wide(tl.load(dloss + row))
        for start in range(0, n, BLOCK):
            at = start + columns
            v = wide(tl.load(x + at, mask=at < n, other=0))
            p = tl.exp(v - shift) / sum - tl.where(at == right, 1.0, 0.0)
            tl.store(dx + row * n + at, (factor * p).to(dx.dtype.element_ty), at < n)


@triton.jit
def held_kernel(
    loss, dx, dloss, x, target, LOSS: tl.constexpr, GRAD: tl.constexpr, rows, n,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row, column, inside = tile(rows, n, ROWS, COLUMNS)
    own = row < rows
    right = tl.load(target + row, mask=own, other=0)
    v = wide(tl.load(x + row * n + column, mask=inside, other=float("-inf")))
    at_right = wide(tl.load(x + row * n + right, mask=own, other=0))
    shift, log, sum = held_log_of_sum(v)

    if LOSS:
        tl.store(loss + row, (log - (at_right - shift)).to(loss.dtype.element_ty), own)
    if GRAD:
        p = tl.exp(v - shift) / sum - tl.where(column == right, 1.0, 0.0)
        if not LOSS:
            p *= wide(tl.load(dloss + row, mask=own, other=0))
        tl.store(dx + row * n + column, p.to(dx.dtype.element_ty), inside)
