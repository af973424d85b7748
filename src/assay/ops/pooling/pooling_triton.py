"""The largest or the mean of each k x k window in Triton, and their gradients.

A lane stands for an element of y, and of dx in the gradient; all walk their windows in step.

shapes  x, dx: planes of h x w; y, dy: planes of (h / k) x (w / k); contiguous, of one dtype
bytes   (1 + 1 / k^2) * itemsize an element of x; maxpool's gradient one more
FLOPs   1 an element of x
"""

import triton
import triton.language as tl

from ..pointwise_triton import span, wide


@triton.jit
def kernel(y, x, n, h, w, k, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    i = span(BLOCK)
    inside = i < n
    across = w // k
    down = h // k
    row = i // across % down * k
    corner = x + (i // across // down * h + row) * w + i % across * k
    taken = wide(tl.load(corner, mask=inside, other=0))
    for j in range(1, k * k):
        v = wide(tl.load(corner + j // k * w + j % k, mask=inside, other=0))
        if LARGEST:
            taken = tl.where((v > taken) | (v != v), v, taken)
        else:
            taken += v
    if not LARGEST:
        taken = taken / (k * k)
    tl.store(y + i, taken.to(y.dtype.element_ty), mask=inside)


@triton.jit
def gradient_kernel(dx, dy, x, n, h, w, k, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    i = span(BLOCK)
    across = w // k
    down = h // k
    plane = i // w // h
    row = i // w % h
    column = i % w
    inside = (i < n) & (row // k < down) & (column // k < across)
    window = (plane * down + row // k) * across + column // k
    g = wide(tl.load(dy + window, mask=inside, other=0))
    if LARGEST:
        corner = x + (plane * h + row // k * k) * w + column // k * k
        best = wide(tl.load(corner, mask=inside, other=0))
        place = tl.zeros([BLOCK], tl.int64)
        for j in range(k * k):
            v = wide(tl.load(corner + j // k * w + j % k, mask=inside, other=0))
            better = (v > best) | (v != v)
            best = tl.where(better, v, best)
            place = tl.where(better, j, place)
        g = tl.where(place == row % k * k + column % k, g, 0)
    else:
        g = g / (k * k)
    tl.store(dx + i, tl.where(inside, g, 0).to(dx.dtype.element_ty), mask=i < n)
