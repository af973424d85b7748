"""Local response norm across channels and its gradient in Triton: a program a tile of an image.

kernel           reads its tile, channels by pixels, once for each channel of a window: but for the
                 first time from a cache
terms_kernel     of each element dy x B^(-beta - 1) and B^-beta
gradient_kernel  puts the terms of its windows together

A plane comes as so many vectors of WIDTH pixels: of a bare number Triton knows a divisor of 16 or
none, and would load single elements of 54 x 54.

shapes  x, y, dx, dy: (batch, channels, plane), contiguous, of one dtype; kept: (2, n)
bytes   2 * n * itemsize; the gradient 3, and 4 of float32
FLOPs   2 * size + 4 an element; the gradient 3 * size + 12
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice

from ..pointwise_triton import inverse_root, wide


@triton.jit
def constant(value, like):
    """A number as the dtype that is computed in."""
    return tl.full([1], value, like.dtype)


@triton.jit
def tile(channels, plane, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    """Of this program: its channels, its pixels, and where these elements lie in x."""
    tiles, groups = tl.cdiv(plane, BLOCK), tl.cdiv(channels, CHANNELS)
    own = tl.program_id(0)
    image = (own // groups // tiles).to(tl.int64)
    c = own % groups * CHANNELS + tl.arange(0, CHANNELS)[:, None]
    pixel = (own // groups % tiles).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    return c, pixel, image * channels * plane + c * plane + pixel


@triton.jit
def base_of(x, i, c, there, channels, plane, SIZE: tl.constexpr, alpha, add, like):
    total = tl.zeros_like(like)
    for j in tl.static_range(SIZE):
        o = j - SIZE // 2
        v = wide(
            tl.load(x + i + o * plane, mask=there & (c + o >= 0) & (c + o < channels), other=0)
        )
        total += v * v
    scale = constant(alpha, like) / constant(SIZE, like)
    return constant(add, like) + scale * total


@triton.jit
def falling(base, beta, QUARTERS: tl.constexpr, NEAREST: tl.constexpr):
    """base^-beta, of roots where QUARTERS, 4 beta, is a whole number up to 4, else -1.

    NEAREST: of roots rounded to nearest, for a gradient, whose sums cancel what hardware's miss.
    """
    if QUARTERS < 0:
        return libdevice.pow(base, tl.zeros_like(base) - constant(beta, base))
    half = inverse_root(base) if NEAREST else libdevice.rsqrt(base)
    made = tl.full(half.shape, 1, half.dtype)
    if QUARTERS % 2:
        made = tl.sqrt_rn(half) if NEAREST and half.dtype == tl.float32 else tl.sqrt(half)
    if QUARTERS % 4 >= 2:
        made *= half
    if QUARTERS == 4:
        made *= half * half
    return made


@triton.jit
def kernel(
    y,
    x,
    channels,
    vectors,
    WIDTH: tl.constexpr,
    SIZE: tl.constexpr,
    alpha,
    beta,
    add,
    QUARTERS: tl.constexpr,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    plane = vectors * WIDTH
    c, pixel, i = tile(channels, plane, CHANNELS, BLOCK)
    v = wide(tl.load(x + i, mask=(pixel < plane) & (c < channels), other=0))
    base = base_of(x, i, c, pixel < plane, channels, plane, SIZE, alpha, add, v)
    made = (v * falling(base, beta, QUARTERS, False)).to(y.dtype.element_ty)
    tl.store(y + i, made, mask=(pixel < plane) & (c < channels))


@triton.jit
def terms_kernel(
    kept,
    dy,
    x,
    n,
    channels,
    vectors,
    WIDTH: tl.constexpr,
    SIZE: tl.constexpr,
    alpha,
    beta,
    add,
    QUARTERS: tl.constexpr,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    plane = vectors * WIDTH
    c, pixel, i = tile(channels, plane, CHANNELS, BLOCK)
    inside = (pixel < plane) & (c < channels)
    v = wide(tl.load(x + i, mask=inside, other=0))
    g = wide(tl.load(dy + i, mask=inside, other=0))
    base = base_of(x, i, c, pixel < plane, channels, plane, SIZE, alpha, add, v)
    scale = falling(base, beta, QUARTERS, True)
    tl.store(kept + i, g * v * (scale / base), mask=inside)
    tl.store(kept + n + i, scale, mask=inside)


@triton.jit
def gradient_kernel(
    dx,
    kept,
    dy,
    x,
    n,
    channels,
    vectors,
    WIDTH: tl.constexpr,
    SIZE: tl.constexpr,
    alpha,
    beta,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    plane = vectors * WIDTH
    c, pixel, i = tile(channels, plane, CHANNELS, BLOCK)
    inside = (pixel < plane) & (c < channels)
    v = wide(tl.load(x + i, mask=inside, other=0))
    g = wide(tl.load(dy + i, mask=inside, other=0))
    others = tl.zeros_like(v)
    for j in tl.static_range(SIZE):
        o = j - (SIZE - 1) // 2
        there = (pixel < plane) & (c + o >= 0) & (c + o < channels)
        others += tl.load(kept + i + o * plane, mask=there, other=0)
    factor = 2 * constant(alpha, v) / constant(SIZE, v) * constant(beta, v)
    made = g * tl.load(kept + n + i, mask=inside, other=0) - factor * v * others
    tl.store(dx + i, made.to(dx.dtype.element_ty), mask=inside)
