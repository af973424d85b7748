"""How rows are given to threads: few enough elements for registers, or walked by a block.

include/rows.cuh has the device's side. The sizes here decide which instance is compiled.
"""

from __future__ import annotations

import math

from .launching import accumulator, blocks, multiprocessors

ROWS_OF_BLOCK = 4
"""Rows of one warp each lie four to a block."""
LEAST = 64
"""Threads of a block that holds a row, at least."""
SHARING = 4
"""Blocks on each multiprocessor that share few rows."""
RESIDENT, SPARSE = 2048, 256
"""Threads that a multiprocessor has at once, at most: 1,024 or 1,536 on smaller cards; and those up
to which few rows are spread where a row is reduced three times, each time by all of its threads."""
WALKERS = 512
"""Threads of a block that walks a row."""


def of_rows(x) -> tuple[int, int]:
    """Rows, and elements of each: the last dimension, in whatever dimensions the rows lie."""
    return math.prod(x.shape[:-1]), x.shape[-1]


def held(
    n: int, itemsize: int, most: int = 32, widest: int = 1024, each: int = 4, alone: int = 4
) -> tuple[int, int] | None:
    """(threads of a row, vectors a thread) that hold n elements in registers, or None.

    most: elements a thread may hold; widest: threads of a row. A thread of 1,024 has 64 registers,
    one of 512 has 128. each: vectors a thread had best, in a block of up to 512; alone: in a warp.
    A row that a warp can hold so belongs to one, which needs no barrier.
    """
    width = 16 // itemsize
    vectors = blocks(n, width)
    wished = max(power(blocks(vectors, max(4, each))), min(512, power(blocks(vectors, each))))
    threads = 32 if vectors <= 32 * alone else min(widest, max(LEAST, wished))
    each = power(blocks(vectors, threads))
    while each * width > most and LEAST <= threads < widest:
        threads, each = 2 * threads, each // 2
    if each * width > most and threads == 32:
        threads, each = 128, max(1, each // 4)
    return (threads, each) if each * width <= most else None


def row_kind(n: int, itemsize: int, threads: int, each: int) -> str:
    """The template argument that says what is known of a row: `Row` in include/rows.cuh."""
    width = 16 // itemsize
    if n % width:
        return "assay::Row::ANY"
    return "assay::Row::FULL" if n == threads * each * width else "assay::Row::WHOLE"


TILE, MOST_COLUMNS = 1024, 1 << 14
"""Elements that a program of Triton takes at least, and of a row at most: 32 a thread."""


def short(n):
    """Where a program of Triton can hold a row: for `when`."""
    return n <= MOST_COLUMNS or f"meant for rows of up to {MOST_COLUMNS:,} elements"


def by_tiles(kernel, rows, n, arguments, each=16):
    """Launches a kernel of Triton that holds whole rows: `each` elements a thread, if it can be."""
    columns = power(n)
    together = max(1, TILE // columns)
    warps = min(16, max(1, together * columns // (32 * each)))
    kernel[(blocks(rows, together),)](*arguments, rows, n, together, columns, num_warps=warps)


def few_long(rows, n):
    """Where a row is worth sharing among blocks: for `when`."""
    return (rows < 256 and n >= 4096) or "meant for less than 256 rows of 4,096 elements or more"


def in_parts(k, name, x, rows, n, kinds):
    """Launches `<name>_parts`, by blocks that share the tiles of a row; the numbers that they keep,
    `kinds` of each part, and how many parts a row has."""
    import torch

    parts = max(1, min(blocks(n, 4096), SHARING * multiprocessors(x) // rows))
    kept = torch.empty(rows, parts, kinds, dtype=accumulator(x), device=x.device)
    k[f"{name}_parts<{k.type(x)}, {WALKERS}>"](grid=rows * parts, block=WALKERS, shared=0)(
        kept, x, n, parts
    )
    return kept, parts


def power(n: int) -> int:
    """The power of two that is n or the next above it."""
    return 1 << max(0, n - 1).bit_length()


def spread(rows: int, threads: int, each: int, room: int) -> tuple[int, int]:
    """The same of so few rows that more threads find room: what a thread holds comes later each."""
    while each > 1 and threads < 1024 and 2 * rows * threads <= room:
        threads, each = 2 * threads, each // 2
    return threads, each


def launch_held(k, name, x, rows, n, chosen, room):
    """What launches `<name>_held` for rows of n elements of x's dtype. chosen: what `held` says;
    room: threads of a multiprocessor, up to which few rows are spread."""
    threads, each = chosen
    threads, each = spread(rows, threads, each, room * multiprocessors(x))
    together = ROWS_OF_BLOCK if threads == 32 else 1
    row = row_kind(n, x.element_size(), threads, each)
    kernel = k[f"{name}_held<{k.type(x)}, {threads}, {each}, {row}>"]
    return kernel(grid=blocks(rows, together), block=threads * together, shared=0)


def by_rows(k, name, x, arguments, most=32, each=4, alone=4, room=SPARSE, walkers=WALKERS):
    """Launches `<name>_held` where a row of x fits registers, else `<name>_walked`.

    most, each, alone: as in `held`; room: as in `launch_held`; walkers: threads of a block that
    walks a row.
    """
    rows, n = of_rows(x)
    chosen = held(n, x.element_size(), most, each=each, alone=alone)
    if chosen is None:
        kernel = k[f"{name}_walked<{k.type(x)}, {walkers}>"]
        launch = kernel(grid=rows, block=walkers, shared=0)
    else:
        launch = launch_held(k, name, x, rows, n, chosen, room)
    launch(*arguments, rows, n)


def streamable(n, dtype):
    """Where a row is long enough for a block, and fits its registers: for `when`."""
    from assay.inputs import dtype_of

    chosen = held_streamed(n, dtype_of(dtype).itemsize)
    return (chosen is not None and chosen[0] > 32) or "meant for rows that a block can hold"


def held_streamed(n, itemsize):
    """As `held`, of 64 registers a thread: 32 numbers of 8 bytes would take all of them."""
    return held(n, itemsize, 32 if itemsize < 8 else 8)


def streamed(k, name, x, arguments):
    """Launches `<name>_streamed`: as many blocks as fit, each for every so manieth row."""
    rows, n = of_rows(x)
    threads, each = held_streamed(n, x.element_size())
    grid = min(rows, multiprocessors(x) * (1024 // threads))
    kernel = k[f"{name}_streamed<{k.type(x)}, {threads}, {each}>"]
    kernel(grid=grid, block=threads, shared=threads * each * 16)(*arguments, rows, n)
