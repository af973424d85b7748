"""batchnorm2d and its gradient in Triton: one program a channel, walked BLOCK elements at a time.

Plain, and slow where there are few channels: cuda/split shares a channel among blocks.

shapes  x, y, dx, dy: (batch, channels, plane), contiguous, of one dtype; w, b, dw, db: channels
bytes   4 * elements * itemsize, the gradient 7, less what the L2 cache still has
FLOPs   8 an element; the gradient 15
"""

import triton
import triton.language as tl

from ..pointwise_triton import inverse_root, mean_of, wide


@triton.jit
def own(j, channels, plane, total):
    """Where element j of this program's channel lies, and whether there is one."""
    channel = tl.program_id(0)
    return (j // plane * channels + channel) * plane + j % plane, j < total


@triton.jit
def statistics(x, channels, plane, total, BLOCK: tl.constexpr):
    dtype: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    sums = tl.zeros([BLOCK], dtype)
    for start in range(0, total, BLOCK):
        at, inside = own(start + tl.arange(0, BLOCK).to(tl.int64), channels, plane, total)
        sums += wide(tl.load(x + at, mask=inside, other=0))
    mean = mean_of(tl.sum(sums, 0), total)
    squares = tl.zeros([BLOCK], dtype)
    for start in range(0, total, BLOCK):
        at, inside = own(start + tl.arange(0, BLOCK).to(tl.int64), channels, plane, total)
        d = wide(tl.load(x + at, mask=inside, other=0)) - mean
        squares += tl.where(inside, d * d, 0)
    return mean, inverse_root(mean_of(tl.sum(squares, 0), total) + 1e-5)


@triton.jit
def kernel(y, x, w, b, batch, channels, plane, BLOCK: tl.constexpr):
    total = batch * plane
    mean, rstd = statistics(x, channels, plane, total, BLOCK)
    scale = rstd * wide(tl.load(w + tl.program_id(0)))
    shift = wide(tl.load(b + tl.program_id(0)))
    for start in range(0, total, BLOCK):
        at, inside = own(start + tl.arange(0, BLOCK).to(tl.int64), channels, plane, total)
        v = wide(tl.load(x + at, mask=inside, other=0))
        tl.store(y + at, ((v - mean) * scale + shift).to(y.dtype.element_ty), inside)


@triton.jit
def gradient_kernel(dx, dw, db, dy, x, w, batch, channels, plane, BLOCK: tl.constexpr):
    dtype: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    total = batch * plane
    mean, rstd = statistics(x, channels, plane, total, BLOCK)
    sums = tl.zeros([BLOCK], dtype)
    products = tl.zeros([BLOCK], dtype)
    for start in range(0, total, BLOCK):
        at, inside = own(start + tl.arange(0, BLOCK).to(tl.int64), channels, plane, total)
        g = wide(tl.load(dy + at, mask=inside, other=0))
        h = (wide(tl.load(x + at, mask=inside, other=0)) - mean) * rstd
        sums += g
        products += tl.where(inside, g * h, 0)
    of_g = tl.sum(sums, 0)
    of_gh = tl.sum(products, 0)
    tl.store(dw + tl.program_id(0), of_gh.to(dw.dtype.element_ty))
    tl.store(db + tl.program_id(0), of_g.to(db.dtype.element_ty))
    scale = rstd * wide(tl.load(w + tl.program_id(0)))
    for start in range(0, total, BLOCK):
        at, inside = own(start + tl.arange(0, BLOCK).to(tl.int64), channels, plane, total)
        g = wide(tl.load(dy + at, mask=inside, other=0))
        h = (wide(tl.load(x + at, mask=inside, other=0)) - mean) * rstd
        made = scale * (g - of_g / total - h * (of_gh / total))
        tl.store(dx + at, made.to(dx.dtype.element_ty), inside)
