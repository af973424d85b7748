"""Local response norm across channels and its gradient in Triton: a lane an element, as cuda/naive.

shapes  x, y, dx, dy: (batch, channels, plane), contiguous, of one dtype; kept: (2, n)
bytes   2 * n * itemsize; the gradient 3, and 4 of float32
FLOPs   2 * size + 4 an element; the gradient 3 * size + 12
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice

from ..pointwise_triton import span, wide


@triton.jit
def constant(value, like):
    """A number as the dtype that is computed in."""
    return tl.full([1], value, like.dtype)


@triton.jit
def base_of(x, i, inside, channels, plane, size, alpha, add, like):
    channel = i // plane % channels
    total = like * 0
    for j in range(size):
        c = channel - size // 2 + j
        there = inside & (c >= 0) & (c < channels)
        v = wide(tl.load(x + i + (c - channel) * plane, mask=there, other=0))
        total += v * v
    scale = constant(alpha, like) / constant(size, like)
    return constant(add, like) + scale * total


@triton.jit
def kernel(y, x, n, channels, plane, size, alpha, beta, add, BLOCK: tl.constexpr):
    i = span(BLOCK)
    inside = i < n
    v = wide(tl.load(x + i, mask=inside, other=0))
    base = base_of(x, i, inside, channels, plane, size, alpha, add, tl.zeros([BLOCK], v.dtype))
    scale = libdevice.pow(base, tl.zeros([BLOCK], v.dtype) - constant(beta, v))
    tl.store(y + i, (v * scale).to(y.dtype.element_ty), mask=inside)


@triton.jit
def terms_kernel(kept, dy, x, n, channels, plane, size, alpha, beta, add, BLOCK: tl.constexpr):
    i = span(BLOCK)
    inside = i < n
    v = wide(tl.load(x + i, mask=inside, other=0))
    g = wide(tl.load(dy + i, mask=inside, other=0))
    base = base_of(x, i, inside, channels, plane, size, alpha, add, tl.zeros([BLOCK], v.dtype))
    scale = libdevice.pow(base, tl.zeros([BLOCK], v.dtype) - constant(beta, v))
    tl.store(kept + i, g * v * (scale / base), mask=inside)
    tl.store(kept + n + i, scale, mask=inside)


@triton.jit
def gradient_kernel(dx, kept, dy, x, n, channels, plane, size, alpha, beta, BLOCK: tl.constexpr):
    i = span(BLOCK)
    inside = i < n
    channel = i // plane % channels
    v = wide(tl.load(x + i, mask=inside, other=0))
    g = wide(tl.load(dy + i, mask=inside, other=0))
    others = tl.zeros([BLOCK], v.dtype)
    for j in range(size):
        c = channel - (size - 1) // 2 + j
        there = inside & (c >= 0) & (c < channels)
        others += tl.load(kept + i + (c - channel) * plane, mask=there, other=0)
    factor = 2 * constant(alpha, v) / constant(size, v) * constant(beta, v)
    made = g * tl.load(kept + n + i, mask=inside, other=0) - factor * v * others
    tl.store(dx + i, made.to(dx.dtype.element_ty), mask=inside)
