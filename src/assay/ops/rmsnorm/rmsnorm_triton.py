"""rmsnorm and its gradient in Triton: one program a row, walked BLOCK elements at a time.

What the first walks read of x asks to leave the cache last, for those that come after them.

kernel           the squares, then y: a walk each
held_kernel      ROWS whole rows of up to COLUMNS elements by a program, in its registers: read once
gradient_kernel  the squares, the product with h, then dx; keeps rstd of its row
columns_kernel   dw: one program for COLUMNS neighbouring columns, ROWS rows at a time
held_gradient_kernel
                 a program stays for many rows, whole in registers, and adds up its part of the sums
                 over rows there (../norms_triton.py)

shapes  x, y, dx, dy: (rows, n); w, dw: n; kept: rows
bytes   2 * rows * n * itemsize, the gradient 5: the walks after the first find the row in a cache
FLOPs   4 * rows * n; the gradient 11 * rows * n
"""

import triton
import triton.language as tl

from ..pointwise_triton import inverse_root, mean_of, tile, wide


@triton.jit
def reciprocal_root(x, n, BLOCK: tl.constexpr):
    dtype: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    columns = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], dtype)
    for start in range(0, n, BLOCK):
        at = start + columns
        v = wide(tl.load(x + at, mask=at < n, other=0, eviction_policy="evict_last"))
        squares += v * v
    return inverse_root(mean_of(tl.sum(squares, 0), n) + 1e-6)


@triton.jit
def kernel(y, x, w, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # row * n may pass 2**31
    x += row * n
    y += row * n
    rstd = reciprocal_root(x, n, BLOCK)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < n
        h = wide(tl.load(x + at, mask=inside, other=0)) * rstd
        scale = wide(tl.load(w + at, mask=inside, other=0))
        tl.store(y + at, (h * scale).to(y.dtype.element_ty), inside)


@triton.jit
def held_kernel(y, x, w, rows, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column, inside = tile(rows, n, ROWS, COLUMNS)
    v = wide(tl.load(x + row * n + column, mask=inside, other=0))
    scale = wide(tl.load(w + column, mask=column < n, other=0))
    rstd = inverse_root(mean_of(tl.sum(v * v, 1), n) + 1e-6)[:, None]
    tl.store(y + row * n + column, (v * rstd * scale).to(y.dtype.element_ty), inside)


@triton.jit
def gradient_kernel(dx, kept, dy, x, w, n, BLOCK: tl.constexpr):
    dtype: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64)
    x += row * n
    dy += row * n
    dx += row * n
    rstd = reciprocal_root(x, n, BLOCK)
    tl.store(kept + row, rstd)
    products = tl.zeros([BLOCK], dtype)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < n
        h = wide(tl.load(x + at, mask=inside, other=0)) * rstd
        g = wide(tl.load(dy + at, mask=inside, other=0)) * wide(
            tl.load(w + at, mask=inside, other=0)
        )
        products += g * h
    of_gh = mean_of(tl.sum(products, 0), n)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < n
        h = wide(tl.load(x + at, mask=inside, other=0)) * rstd
        g = wide(tl.load(dy + at, mask=inside, other=0)) * wide(
            tl.load(w + at, mask=inside, other=0)
        )
        tl.store(dx + at, (rstd * (g - h * of_gh)).to(dx.dtype.element_ty), inside)


@triton.jit
def columns_kernel(dw, kept, dy, x, rows, n, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    dtype: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    of_w = tl.zeros([ROWS, COLUMNS], dtype)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (column < n)[None, :]
        at = row.to(tl.int64)[:, None] * n + column[None, :]
        rstd = tl.load(kept + row, mask=row < rows, other=0)[:, None]
        g = wide(tl.load(dy + at, mask=inside, other=0))
        of_w += g * (wide(tl.load(x + at, mask=inside, other=0)) * rstd)
    tl.store(dw + column, tl.sum(of_w, 0).to(dw.dtype.element_ty), column < n)
