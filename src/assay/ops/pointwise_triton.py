"""y[i] = F(a[i], ...) in Triton: one program for BLOCK neighbouring elements, masked at the end.

F is a `@triton.jit` function of one value an input, which come widened to float32 (float64 stays):
the operator's own file has it. The result is rounded once, by the store.

shapes  y, a, b, c: n elements, contiguous, of one floating dtype
bytes   (inputs + 1) * n * itemsize: each element read once and written once
FLOPs   those of F an element
"""

import triton
import triton.language as tl


@triton.jit
def span(BLOCK: tl.constexpr):
    # In 64 bits: past 2**31 elements a 32-bit index would wrap around.
    return tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def tile(rows, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Rows, in 64 bits, and columns of a program's tile, and what of it is inside."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    return row, column, (row < rows) & (column < n)


@triton.jit
def wide(v):
    """float32, or float64 as it is."""
    return v if v.dtype == tl.float64 else v.to(tl.float32)


@triton.jit
def mean_of(total, n):
    """total / n, rounded to nearest: Triton's own division in float32 is a unit or two off."""
    count = tl.cast(n, total.dtype)  # n may be a constant: Triton compiles a 1 in
    return total / count if total.dtype == tl.float64 else tl.div_rn(total, count)


@triton.jit
def inverse_root(v):
    """1 / sqrt(v), both rounded to nearest: gradients of norms cancel what Triton's own miss."""
    return 1 / tl.sqrt(v) if v.dtype == tl.float64 else tl.div_rn(1.0, tl.sqrt_rn(v))


@triton.jit
def map1(y, a, n, F: tl.constexpr, BLOCK: tl.constexpr):
    i = span(BLOCK)
    v = wide(tl.load(a + i, mask=i < n))
    tl.store(y + i, F(v).to(y.dtype.element_ty), mask=i < n)


@triton.jit
def map2(y, a, b, n, F: tl.constexpr, BLOCK: tl.constexpr):
    i = span(BLOCK)
    v = wide(tl.load(a + i, mask=i < n))
    w = wide(tl.load(b + i, mask=i < n))
    tl.store(y + i, F(v, w).to(y.dtype.element_ty), mask=i < n)


@triton.jit
def map3(y, a, b, c, n, F: tl.constexpr, BLOCK: tl.constexpr):
    i = span(BLOCK)
    u = wide(tl.load(a + i, mask=i < n))
    v = wide(tl.load(b + i, mask=i < n))
    w = wide(tl.load(c + i, mask=i < n))
    tl.store(y + i, F(u, v, w).to(y.dtype.element_ty), mask=i < n)
