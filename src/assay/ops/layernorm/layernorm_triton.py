"""layernorm and its gradient in Triton: one program a row, walked BLOCK elements at a time.

What the first walks read of x asks to leave the cache last, for those that come after them.

kernel           mean, then the squares about it, then y: a walk each
held_kernel      ROWS whole rows of up to COLUMNS elements by a program, in its registers: read once
gradient_kernel  the same for dx, and keeps mean and rstd of its row
columns_kernel   dw and db: one program for COLUMNS neighbouring columns, ROWS rows at a time
held_gradient_kernel
                 a program stays for many rows, whole in registers, and adds up its part of the sums
                 over rows there (../norms_triton.py)

shapes  x, y, dx, dy: (rows, n); w, b, dw, db: n; kept: (rows, 2)
bytes   2 * rows * n * itemsize, the gradient 5: the walks after the first find the row in a cache
FLOPs   8 * rows * n; the gradient 15 * rows * n
"""

import triton
import triton.language as tl

from ..pointwise_triton import inverse_root, mean_of, tile, wide


@triton.jit
def statistics(x, n, BLOCK: tl.constexpr):
    dtype: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    columns = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], dtype)
    for start in range(0, n, BLOCK):
        at = start + columns
        sums += wide(tl.load(x + at, mask=at < n, other=0, eviction_policy="evict_last"))
    mean = mean_of(tl.sum(sums, 0), n)
    squares = tl.zeros([BLOCK], dtype)
    for start in range(0, n, BLOCK):
        at = start + columns
        d = wide(tl.load(x + at, mask=at < n, other=0, eviction_policy="evict_last")) - mean
        squares += tl.where(at < n, d * d, 0)
    return mean, inverse_root(mean_of(tl.sum(squares, 0), n) + 1e-5)


@triton.jit
def kernel(y, x, w, b, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # row * n may pass 2**31
    x += row * n
    y += row * n
    mean, rstd = statistics(x, n, BLOCK)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < n
        h = (wide(tl.load(x + at, mask=inside, other=0)) - mean) * rstd
        scale = wide(tl.load(w + at, mask=inside, other=0))
        shift = wide(tl.load(b + at, mask=inside, other=0))
        tl.store(y + at, (h * scale + shift).to(y.dtype.element_ty), inside)


@triton.jit
def held_kernel(y, x, w, b, rows, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column, inside = tile(rows, n, ROWS, COLUMNS)
    v = wide(tl.load(x + row * n + column, mask=inside, other=0))
    scale = wide(tl.load(w + column, mask=column < n, other=0))
    shift = wide(tl.load(b + column, mask=column < n, other=0))
    d = tl.where(inside, v - mean_of(tl.sum(v, 1), n)[:, None], 0)
    rstd = inverse_root(mean_of(tl.sum(d * d, 1), n) + 1e-5)[:, None]
    tl.store(y + row * n + column, (d * rstd * scale + shift).to(y.dtype.element_ty), inside)


@triton.jit
def gradient_kernel(dx, kept, dy, x, w, n, BLOCK: tl.constexpr):
    dtype: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64)
    x += row * n
    dy += row * n
    dx += row * n
    mean, rstd = statistics(x, n, BLOCK)
    tl.store(kept + 2 * row, mean)
    tl.store(kept + 2 * row + 1, rstd)
    sums = tl.zeros([BLOCK], dtype)
    products = tl.zeros([BLOCK], dtype)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < n
        h = (wide(tl.load(x + at, mask=inside, other=0)) - mean) * rstd
        g = wide(tl.load(dy + at, mask=inside, other=0)) * wide(
            tl.load(w + at, mask=inside, other=0)
        )
        sums += g
        products += tl.where(inside, g * h, 0)
    of_g = mean_of(tl.sum(sums, 0), n)
    of_gh = mean_of(tl.sum(products, 0), n)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < n
        h = (wide(tl.load(x + at, mask=inside, other=0)) - mean) * rstd
        g = wide(tl.load(dy + at, mask=inside, other=0)) * wide(
            tl.load(w + at, mask=inside, other=0)
        )
        tl.store(dx + at, (rstd * (g - of_g - h * of_gh)).to(dx.dtype.element_ty), inside)


@triton.jit
def columns_kernel(dw, db, kept, dy, x, rows, n, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    dtype: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    of_w = tl.zeros([ROWS, COLUMNS], dtype)
    of_b = tl.zeros([ROWS, COLUMNS], dtype)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (column < n)[None, :]
        at = row.to(tl.int64)[:, None] * n + column[None, :]
        mean = tl.load(kept + 2 * row, mask=row < rows, other=0)[:, None]
        rstd = tl.load(kept + 2 * row + 1, mask=row < rows, other=0)[:, None]
        g = wide(tl.load(dy + at, mask=inside, other=0))
        h = (wide(tl.load(x + at, mask=inside, other=0)) - mean) * rstd
        of_w += tl.where(inside, g * h, 0)
        of_b += g
    tl.store(dw + column, tl.sum(of_w, 0).to(dw.dtype.element_ty), column < n)
    tl.store(db + column, tl.sum(of_b, 0).to(db.dtype.element_ty), column < n)
