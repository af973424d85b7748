"""y = softmax(x) over the last dimension in Triton: one program a row, or some whole rows.

kernel       one program a row of any length, walked BLOCK columns at a time. Each of the BLOCK
             lanes keeps its own largest value and the sum relative to it (online softmax), so lanes
             are combined once a row, not once a step.
held_kernel  ROWS whole rows of up to COLUMNS elements by a program, in its registers: read once.

shapes  x, y: (rows, n), contiguous, of one floating dtype
bytes   2 * rows * n * itemsize: the second walk finds the row in a cache, if it fits
FLOPs   5 * rows * n counting exp as one (max, subtract, exp, add, divide); two exps, if walked
"""

import triton
import triton.language as tl

from ..pointwise_triton import tile, wide


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    dtype: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64)  # row * n may pass 2**31
    x += row * n
    y += row * n
    columns = tl.arange(0, BLOCK)

    largest = tl.full([BLOCK], float("-inf"), dtype)
    total = tl.full([BLOCK], 0, dtype)
    for start in range(0, n, BLOCK):
        inside = start + columns < n
        v = wide(tl.load(x + start + columns, mask=inside, other=float("-inf")))
        # A comparison keeps a NaN out of `largest`; through exp it enters `total`, and the row.
        more = v > largest
        new = tl.where(more, v, largest)
        # A lane that saw only -inf: exp(-inf - 0) is 0, where exp(-inf + inf) would be NaN.
        shift = tl.where(new == float("-inf"), 0, new)
        # One exp: of what was largest, if that is less now, else of what came; the other is 1.
        e = tl.exp(tl.where(more, largest, v) - shift)
        total = tl.where(more, total * e + 1, total + e)
        largest = new

    top = tl.max(largest, 0)
    shift = tl.where(top == float("-inf"), 0, top)
    scale = 1 / tl.sum(total * tl.exp(largest - shift), 0)
    for start in range(0, n, BLOCK):
        inside = start + columns < n
        v = wide(tl.load(x + start + columns, mask=inside, other=float("-inf")))
        tl.store(y + start + columns, (tl.exp(v - shift) * scale).to(y.dtype.element_ty), inside)


@triton.jit
def held_kernel(x, y, rows, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column, inside = tile(rows, n, ROWS, COLUMNS)
    v = wide(tl.load(x + row * n + column, mask=inside, other=float("-inf")))
    largest = tl.max(v, 1)[:, None]
    e = tl.exp(v - tl.where(largest == float("-inf"), 0, largest))
    scale = 1 / tl.sum(e, 1)[:, None]
    tl.store(y + row * n + column, (e * scale).to(y.dtype.element_ty), inside)
