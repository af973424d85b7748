"""y = c[0] + c[1] x + c[2] x^2 + ... and dx = dy p'(x) in Triton, by Horner's rule.

One program computes BLOCK neighbouring elements, masked at the end; a coefficient is a scalar load.

shapes  y, x, dx, dy: n elements; c: terms coefficients, from the constant one up; of one dtype
bytes   2 * n * itemsize; the gradient 3 * n * itemsize
FLOPs   2 * n * (terms - 1); the gradient n * (3 * terms - 4)
"""

import triton
import triton.language as tl

from ..pointwise_triton import span, wide


@triton.jit
def kernel(y, x, c, n, terms, BLOCK: tl.constexpr):
    i = span(BLOCK)
    v = wide(tl.load(x + i, mask=i < n))
    sum = tl.zeros_like(v) + wide(tl.load(c + terms - 1))
    for k in range(terms - 1):
        sum = sum * v + wide(tl.load(c + terms - 2 - k))
    tl.store(y + i, sum.to(y.dtype.element_ty), mask=i < n)


@triton.jit
def gradient_kernel(dx, dy, x, c, n, terms, BLOCK: tl.constexpr):
    i = span(BLOCK)
    v = wide(tl.load(x + i, mask=i < n))
    g = wide(tl.load(dy + i, mask=i < n))
    slope = tl.zeros_like(v) + (terms - 1) * wide(tl.load(c + terms - 1))
    for k in range(terms - 2):
        slope = slope * v + (terms - 2 - k) * wide(tl.load(c + terms - 2 - k))
    # A constant has no slope, whatever dy is.
    tl.store(dx + i, tl.where(terms == 1, 0, g * slope).to(dx.dtype.element_ty), mask=i < n)
