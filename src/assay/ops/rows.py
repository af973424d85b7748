"""How rows are given to threads: few enough elements for registers, or walked by a block.

include/rows.cuh has the device's side. The sizes here decide which instance is compiled.
"""

from __future__ import annotations

from .launching import blocks

ROWS_OF_BLOCK = 4
"""Rows of one warp each lie four to a block."""
WALKERS = 512
"""Threads of a block that walks a row."""


def held(n: int, itemsize: int, most: int = 32, widest: int = 1024):
    """(threads of a row, vectors a thread) that hold n elements in registers, or None.

    most: elements a thread may hold; widest: threads of a row. A thread of 1,024 has 64 registers,
    one of 512 has 128.
    A row of up to 128 vectors of 16 bytes belongs to a warp, which needs no barrier.
    """
    width = 16 // itemsize
    vectors = blocks(n, width)
    threads = 32 if vectors <= 128 else min(widest, max(128, power(blocks(vectors, 4))))
    each = power(blocks(vectors, threads))
    while each * width > most and 128 <= threads < widest:
        threads, each = 2 * threads, each // 2
    if each * width > most and threads == 32:
        threads, each = 128, max(1, each // 4)
    return (threads, each) if each * width <= most else None


def power(n: int) -> int:
    """The power of two that is n or the next above it."""
    return 1 << max(0, n - 1).bit_length()


def by_rows(k, name, rows, n, dtype, itemsize, arguments, most=32):
    """Launches `<name>_held` where n elements fit registers, else `<name>_walked`."""
    chosen = held(n, itemsize, most)
    if chosen is None:
        kernel = k[f"{name}_walked<{dtype}, {WALKERS}>"]
        kernel(grid=rows, block=WALKERS, shared=0)(*arguments, rows, n)
        return
    threads, each = chosen
    together = ROWS_OF_BLOCK if threads == 32 else 1
    kernel = k[f"{name}_held<{dtype}, {threads}, {each}>"]
    kernel(grid=blocks(rows, together), block=threads * together, shared=0)(*arguments, rows, n)
