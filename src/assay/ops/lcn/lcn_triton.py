"""Local contrast norm in Triton, in two passes: a lane a pixel, all walk their windows in step.

shapes  x, y: planes of h x w, contiguous, of one dtype; v: the same in float32 or float64
bytes   2 * n * itemsize and 2 of float32
FLOPs   3 * size^2 + 6 a pixel
"""

import triton
import triton.language as tl

from ..pointwise_triton import span, wide


@triton.jit
def place(i, h, w):
    """Row and column of each pixel."""
    return i // w % h, i % w


@triton.jit
def neighbour(row, column, j, h, w, size):
    """Rows and columns to the j-th pixel of a window, and whether that is in the image."""
    down = j // size - size // 2
    across = j % size - size // 2
    there = (row + down >= 0) & (row + down < h) & (column + across >= 0) & (column + across < w)
    return down * w + across, there


@triton.jit
def centre_kernel(v, x, n, h, w, size, BLOCK: tl.constexpr):
    i = span(BLOCK)
    inside = i < n
    row, column = place(i, h, w)
    own = wide(tl.load(x + i, mask=inside, other=0))
    total = tl.zeros([BLOCK], own.dtype)
    count = tl.zeros([BLOCK], own.dtype)
    for j in range(size * size):
        step, there = neighbour(row, column, j, h, w, size)
        total += wide(tl.load(x + i + step, mask=inside & there, other=0))
        count += tl.where(there, 1.0, 0.0).to(own.dtype)
    tl.store(v + i, own - total / count, mask=inside)


@triton.jit
def divide_kernel(y, v, n, h, w, size, least, BLOCK: tl.constexpr):
    i = span(BLOCK)
    inside = i < n
    row, column = place(i, h, w)
    own = tl.load(v + i, mask=inside, other=0)
    squares = tl.zeros([BLOCK], own.dtype)
    count = tl.zeros([BLOCK], own.dtype)
    for j in range(size * size):
        step, there = neighbour(row, column, j, h, w, size)
        far = tl.load(v + i + step, mask=inside & there, other=0)
        squares += far * far
        count += tl.where(there, 1.0, 0.0).to(own.dtype)
    sigma = tl.sqrt(squares / count)
    floor = tl.full([BLOCK], least, own.dtype)
    made = own / tl.where(sigma < floor, floor, sigma)  # a NaN stays one
    tl.store(y + i, made.to(y.dtype.element_ty), mask=inside)
