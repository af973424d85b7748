"""The largest or the mean of each k x k window in Triton: one program a tile of y.

A tile has some columns of windows, of some rows: what is divided is the number of a row, not that
of an element. For k = 2 a program loads whole rows of x, and splits them into even and odd columns.

shapes  x: planes of h x w; y: planes of (h / k) x (w / k); contiguous, of one dtype
bytes   (1 + 1 / k^2) * itemsize an element of x
FLOPs   1 an element of x
"""

import triton
import triton.language as tl

from ..pointwise_triton import mean_of, wide


@triton.jit
def tile_of(tiles, ROWS: tl.constexpr, LONG: tl.constexpr):
    """Numbers of ROWS rows of windows, as a column, and which of the tiles across they have."""
    first = tl.program_id(0) // tiles
    first = first.to(tl.int64) if LONG else first
    return (first * ROWS + tl.arange(0, ROWS))[:, None], tl.program_id(0) % tiles


@triton.jit
def widths(units, rest, K: tl.constexpr, UNIT: tl.constexpr, LONG: tl.constexpr):
    """Windows of a row, of which the compiler knows that UNIT divides them, and elements of one."""
    across = units * UNIT
    w = across * K + rest
    return across, w.to(tl.int64) if LONG else w  # times k it may be more than 32 bits hold


@triton.jit
def halves(p, mask, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Even and odd columns of a tile of 2 * COLUMNS."""
    v = wide(tl.load(p, mask=mask, other=0))
    return tl.split(tl.reshape(v, [ROWS, COLUMNS, 2]))


@triton.jit
def beats(v, best):
    """The first of several stays; a NaN is larger than all, and the last NaN is the largest."""
    return (v > best) | (v != v)


@triton.jit
def part_of(total, K: tl.constexpr):
    """total / k^2, rounded once: by a product where that is exact."""
    return total * (1 / (K * K)) if K & (K - 1) == 0 else mean_of(total, K * K)


@triton.jit
def taken(so_far, v, LARGEST: tl.constexpr):
    return tl.where(beats(v, so_far), v, so_far) if LARGEST else so_far + v


@triton.jit
def kernel(
    y,
    x,
    lines,
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
    """lines: rows of y in all planes. units * UNIT: windows of a row; rest: columns beyond them.
    WHOLE: h is a multiple of k, so that no row lies between those of windows."""
    across, w = widths(units, rest, K, UNIT, LONG)
    line, tile = tile_of(tiles, ROWS, LONG)
    top = line * K if WHOLE else line // (h // K) * h + line % (h // K) * K
    corner = x + top.to(tl.int64) * w
    column = tile * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (line < lines) & (column < across)
    if K == 2:
        columns = tile * (2 * COLUMNS) + tl.arange(0, 2 * COLUMNS)[None, :]
        there = (line < lines) & (columns < across * 2)
        a, b = halves(corner + columns, there, ROWS, COLUMNS)
        c, d = halves(corner + w + columns, there, ROWS, COLUMNS)
        so_far = taken(taken(taken(a, b, LARGEST), c, LARGEST), d, LARGEST)
    else:
        corner += column * K
        so_far = wide(tl.load(corner, mask=inside, other=0))
        for j in range(1, K * K):
            v = wide(tl.load(corner + j // K * w + j % K, mask=inside, other=0))
            so_far = taken(so_far, v, LARGEST)
    if not LARGEST:
        so_far = part_of(so_far, K)
    to = y + line.to(tl.int64) * across + column
    tl.store(to, so_far.to(y.dtype.element_ty), mask=inside)
