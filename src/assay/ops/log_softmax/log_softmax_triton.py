"""log_softmax and its gradient in Triton.

kernel, gradient_kernel  one program a row of any length, walked BLOCK elements at a time
held_kernel              ROWS whole rows of up to COLUMNS elements by a program: read once

shapes  x, y, dx, dy: (rows, n), contiguous, of one floating dtype
bytes   2 * rows * n * itemsize, the gradient 3: the second walk finds the row in a cache
FLOPs   5 * rows * n; the gradient 4 * rows * n, counting exp as one
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice

from ..pointwise_triton import tile, wide


@triton.jit
def log_of(ones, others):
    """log(ones + others), where ones count exps of 1, of which there is one at least."""
    # In float64 as PyTorch's own: nothing wider is there to tell what digits that loses.
    if ones.dtype == tl.float64:
        return tl.log(ones + others)
    return libdevice.log1p(ones - 1 + others)


@triton.jit
def log_of_sum(x, n, BLOCK: tl.constexpr):
    """(largest, log sum exp(x - largest), the sum) of a row; 0 for a largest of -inf.

    Where one element is nearly all, the logarithm lives on what is added to its 1, which loses
    it. So a lane keeps its own largest and the sum of the others' exps relative to it.
    """
    dtype: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    columns = tl.arange(0, BLOCK)
    largest = tl.full([BLOCK], float("-inf"), dtype)
    rest = tl.full([BLOCK], 0, dtype)
    for start in range(0, n, BLOCK):
        v = wide(tl.load(x + start + columns, mask=start + columns < n, other=float("-inf")))
        # A comparison keeps a NaN out of `largest`; through exp it enters `rest`, and the row.
        more = v > largest
        new = tl.where(more, v, largest)
        shift = tl.where(new == float("-inf"), 0, new)
        e = tl.exp(tl.where(more, largest, v) - shift)
        rest = tl.where(more, (rest + 1) * e, rest + e)
        largest = new

    top = tl.max(largest, 0)
    shift = tl.where(top == float("-inf"), 0, top)
    scale = tl.exp(largest - shift)
    one = (largest == top) & (top > float("-inf"))
    ones = tl.sum(tl.where(one, 1.0, 0.0).to(dtype), 0)
    others = tl.sum(rest * scale + tl.where(one, 0, scale), 0)
    return shift, log_of(ones, others), ones + others


@triton.jit
def held_log_of_sum(v):
    """The same of whole rows, a column each: v is (rows, columns), -inf beyond a row."""
    top = tl.max(v, 1)[:, None]
    shift = tl.where(top == float("-inf"), 0, top)
    e = tl.exp(v - shift)
    ones = tl.sum(tl.where(e == 1, 1.0, 0.0).to(v.dtype), 1)[:, None]
    others = tl.sum(tl.where(e == 1, 0, e), 1)[:, None]
    return shift, log_of(ones, others), ones + others


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # row * n may pass 2**31
    x += row * n
    y += row * n
    columns = tl.arange(0, BLOCK)
    shift, log, _ = log_of_sum(x, n, BLOCK)
    for start in range(0, n, BLOCK):
        inside = start + columns < n
        v = wide(tl.load(x + start + columns, mask=inside, other=0))
        tl.store(y + start + columns, ((v - shift) - log).to(y.dtype.element_ty), inside)


@triton.jit
def held_kernel(x, y, rows, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column, inside = tile(rows, n, ROWS, COLUMNS)
    v = wide(tl.load(x + row * n + column, mask=inside, other=float("-inf")))
    shift, log, _ = held_log_of_sum(v)
    tl.store(y + row * n + column, ((v - shift) - log).to(y.dtype.element_ty), inside)


@triton.jit
def gradient_kernel(dy, y, dx, n, BLOCK: tl.constexpr):
    dtype: tl.constexpr = tl.float64 if y.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64)
    dy += row * n
    y += row * n
    dx += row * n
    columns = tl.arange(0, BLOCK)

    sums = tl.full([BLOCK], 0, dtype)
    for start in range(0, n, BLOCK):
        sums += wide(tl.load(dy + start + columns, mask=start + columns < n, other=0))
    total = tl.sum(sums, 0)
    for start in range(0, n, BLOCK):
        inside = start + columns < n
        g = wide(tl.load(dy + start + columns, mask=inside, other=0))
        v = wide(tl.load(y + start + columns, mask=inside, other=0))
        tl.store(dx + start + columns, (g - tl.exp(v) * total).to(dx.dtype.element_ty), inside)
