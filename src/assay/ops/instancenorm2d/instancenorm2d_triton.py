"""instancenorm2d and its gradient in Triton: planes held whole, longer ones walked BLOCK at a time.

held_kernel, held_gradient_kernel
                 one program for PLANES planes of up to COLUMNS elements, which are read once
kernel           one program a plane, walked three times
gradient_kernel  the same, four times
sums_kernel      dw and db: one program a channel

shapes  x, y, dx, dy: (batch, channels, plane), contiguous, of one dtype; w, b, dw, db: channels;
        kept: (batch, channels, 2), wide
bytes   2 * elements * itemsize, the gradient 3, and what the L2 cache has lost of a walked plane
FLOPs   8 an element; the gradient 15
"""

import triton
import triton.language as tl

from ..pointwise_triton import inverse_root, mean_of, tile, wide


@triton.jit
def statistics(x, plane, BLOCK: tl.constexpr):
    dtype: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    sums = tl.zeros([BLOCK], dtype)
    for start in range(0, plane, BLOCK):
        i = start + tl.arange(0, BLOCK)
        sums += wide(tl.load(x + i, mask=i < plane, other=0))
    mean = mean_of(tl.sum(sums, 0), plane)
    squares = tl.zeros([BLOCK], dtype)
    for start in range(0, plane, BLOCK):
        i = start + tl.arange(0, BLOCK)
        d = wide(tl.load(x + i, mask=i < plane, other=0)) - mean
        squares += tl.where(i < plane, d * d, 0)
    return mean, inverse_root(mean_of(tl.sum(squares, 0), plane) + 1e-5)


@triton.jit
def held_kernel(y, x, w, b, channels, planes, plane, PLANES: tl.constexpr, COLUMNS: tl.constexpr):
    own, column, inside = tile(planes, plane, PLANES, COLUMNS)
    v = wide(tl.load(x + own * plane + column, mask=inside, other=0))
    weight = wide(tl.load(w + own % channels))
    shift = wide(tl.load(b + own % channels))
    mean = mean_of(tl.sum(v, 1), plane)[:, None]
    d = v - mean
    var = mean_of(tl.sum(tl.where(inside, d * d, 0), 1), plane)[:, None]
    made = d * (inverse_root(var + 1e-5) * weight) + shift
    tl.store(y + own * plane + column, made.to(y.dtype.element_ty), inside)


@triton.jit
def held_gradient_kernel(
    dx, kept, dy, x, w, channels, planes, plane, PLANES: tl.constexpr, COLUMNS: tl.constexpr
):
    own, column, inside = tile(planes, plane, PLANES, COLUMNS)
    v = wide(tl.load(x + own * plane + column, mask=inside, other=0))
    g = wide(tl.load(dy + own * plane + column, mask=inside, other=0))
    weight = wide(tl.load(w + own % channels))
    d = tl.where(inside, v - mean_of(tl.sum(v, 1), plane)[:, None], 0)
    rstd = inverse_root(mean_of(tl.sum(d * d, 1), plane)[:, None] + 1e-5)
    h = d * rstd
    of_g = tl.sum(g, 1)[:, None]
    of_gh = tl.sum(g * h, 1)[:, None]
    made = rstd * weight * (g - mean_of(of_g, plane) - h * mean_of(of_gh, plane))
    tl.store(dx + own * plane + column, made.to(dx.dtype.element_ty), inside)
    tl.store(kept + 2 * own, of_gh, own < planes)
    tl.store(kept + 2 * own + 1, of_g, own < planes)


@triton.jit
def kernel(y, x, w, b, channels, plane, BLOCK: tl.constexpr):
    own = tl.program_id(0).to(tl.int64)
    x += own * plane
    y += own * plane
    mean, rstd = statistics(x, plane, BLOCK)
    scale = rstd * wide(tl.load(w + own % channels))
    shift = wide(tl.load(b + own % channels))
    for start in range(0, plane, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = wide(tl.load(x + i, mask=i < plane, other=0))
        tl.store(y + i, ((v - mean) * scale + shift).to(y.dtype.element_ty), i < plane)


@triton.jit
def gradient_kernel(dx, kept, dy, x, w, channels, plane, BLOCK: tl.constexpr):
    dtype: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    own = tl.program_id(0).to(tl.int64)
    x += own * plane
    dy += own * plane
    dx += own * plane
    mean, rstd = statistics(x, plane, BLOCK)
    sums = tl.zeros([BLOCK], dtype)
    products = tl.zeros([BLOCK], dtype)
    for start in range(0, plane, BLOCK):
        i = start + tl.arange(0, BLOCK)
        g = wide(tl.load(dy + i, mask=i < plane, other=0))
        h = (wide(tl.load(x + i, mask=i < plane, other=0)) - mean) * rstd
        sums += g
        products += tl.where(i < plane, g * h, 0)
    of_g = tl.sum(sums, 0)
    of_gh = tl.sum(products, 0)
    tl.store(kept + 2 * own, of_gh)
    tl.store(kept + 2 * own + 1, of_g)
    scale = rstd * wide(tl.load(w + own % channels))
    for start in range(0, plane, BLOCK):
        i = start + tl.arange(0, BLOCK)
        g = wide(tl.load(dy + i, mask=i < plane, other=0))
        h = (wide(tl.load(x + i, mask=i < plane, other=0)) - mean) * rstd
        made = scale * (g - of_g / plane - h * (of_gh / plane))
        tl.store(dx + i, made.to(dx.dtype.element_ty), i < plane)


@triton.jit
def sums_kernel(dw, db, kept, batch, channels, BLOCK: tl.constexpr):
    own = tl.program_id(0)
    of_gh = tl.zeros([BLOCK], kept.dtype.element_ty)
    of_g = tl.zeros([BLOCK], kept.dtype.element_ty)
    for start in range(0, batch, BLOCK):
        i = start + tl.arange(0, BLOCK)
        at = kept + 2 * (i.to(tl.int64) * channels + own)
        of_gh += tl.load(at, mask=i < batch, other=0)
        of_g += tl.load(at + 1, mask=i < batch, other=0)
    tl.store(dw + own, tl.sum(of_gh, 0).to(dw.dtype.element_ty))
    tl.store(db + own, tl.sum(of_g, 0).to(db.dtype.element_ty))
