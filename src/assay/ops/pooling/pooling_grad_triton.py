"""Gradients of the largest and the mean of k x k windows in Triton: one program a tile of dx.

A tile has some columns of a few bands, which are k rows that one row of windows covers. For k = 2 a
program splits its rows of x into even and odd columns, and joins those of dx again; else a lane has
one column of a band, and looks at all of its window.

shapes  x, dx: planes of h x w; dy: planes of (h / k) x (w / k); contiguous, of one dtype
bytes   (2 + 1 / k^2) * itemsize an element of x; of the mean, which needs no x, one less
FLOPs   1 an element of x
"""

import triton
import triton.language as tl

from ..pointwise_triton import wide
from .pooling_triton import beats, halves, part_of, tile_of, widths


@triton.jit
def better(v, best, place, j):
    """The largest so far and its place, once v at place j has been looked at."""
    return tl.where(beats(v, best), v, best), tl.where(beats(v, best), j, place)


@triton.jit
def joined(even, odd, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    return tl.reshape(tl.join(even, odd), [ROWS, 2 * COLUMNS])


@triton.jit
def only(g, place, j):
    return tl.where(place == j, g, tl.zeros_like(g))


@triton.jit
def kernel(
    dx,
    dy,
    x,
    bands,
    h,
    units,
    rest,
    tiles,
    K: tl.constexpr,
    LARGEST: tl.constexpr,
    WHOLE: tl.constexpr,
    UNIT: tl.constexpr,
    LONG: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """bands: of all planes, counted with what a plane has below its windows. units * UNIT: windows
    of a row; rest: columns beyond them. WHOLE: h is a multiple of k, so nothing lies below."""
    across, w = widths(units, rest, K, UNIT, LONG)
    band, tile = tile_of(tiles, ROWS, LONG)
    column = tile * COLUMNS + tl.arange(0, COLUMNS)[None, :]  # of windows for k = 2, else of dx
    if WHOLE:
        line, top, rows = band, band * K, K
        inside = band < bands
    else:
        own = tl.cdiv(h, K)
        plane, row = band // own, band % own
        line, top, rows = plane * (h // K) + row, plane * h + row * K, h - row * K
        inside = (band < bands) & (row < h // K)
    corner = top.to(tl.int64) * w
    line = line.to(tl.int64) * across
    if K == 2:
        window = column
        columns = tile * (2 * COLUMNS) + tl.arange(0, 2 * COLUMNS)[None, :]
    else:
        window = column // K
        columns = column
    # What is in no window has a dy of 0.
    g = wide(tl.load(dy + line + window, mask=inside & (window < across), other=0))
    if LARGEST:
        inside = inside & (columns < across * K)
        if K == 2:
            a, b = halves(x + corner + columns, inside, ROWS, COLUMNS)
            c, d = halves(x + corner + w + columns, inside, ROWS, COLUMNS)
            best, place = better(b, a, tl.zeros([ROWS, COLUMNS], tl.int32), 1)
            best, place = better(c, best, place, 2)
            best, place = better(d, best, place, 3)
        else:
            at = x + corner + window * K
            best = wide(tl.load(at, mask=inside, other=0))
            place = tl.zeros([ROWS, COLUMNS], tl.int32)
            for j in range(1, K * K):
                v = wide(tl.load(at + j // K * w + j % K, mask=inside, other=0))
                best, place = better(v, best, place, j)
    else:
        g = part_of(g, K)
    to = dx + corner + columns
    inside = (band < bands) & (columns < w)
    if K == 2:
        a, b, c, d = g, g, g, g
        if LARGEST:
            a, b, c, d = only(g, place, 0), only(g, place, 1), only(g, place, 2), only(g, place, 3)
        upper, lower = joined(a, b, ROWS, COLUMNS), joined(c, d, ROWS, COLUMNS)
        tl.store(to, upper.to(dx.dtype.element_ty), mask=inside)
        tl.store(to + w, lower.to(dx.dtype.element_ty), mask=inside & (rows > 1))
    else:
        for r in range(K):
            out = only(g, place, r * K + column % K) if LARGEST else g
            tl.store(to + r * w, out.to(dx.dtype.element_ty), mask=inside & (r < rows))
