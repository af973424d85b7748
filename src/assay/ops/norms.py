"""Launching what layernorm and rmsnorm share: a row a set of threads, and sums over rows."""

from __future__ import annotations

import torch

from assay import hardware

from .launching import accumulator, blocks, multiprocessors
from .rows import RESIDENT, ROWS_OF_BLOCK, WALKERS, by_rows, held, in_parts, of_rows, power

PARTIALS, ROWS = (8, 64), (32, 16)
"""Columns that a block adds, and rows side by side: 32 bytes a row, of partial sums and of x."""
MOST_HELD, WIDEST = 16, 512
"""The gradient holds x, dy and two sums in registers: 16 elements a thread, 128 registers."""
FEW_HELD, CROWD = 8, 768
"""With so few elements a thread, of 4 bytes or less, so many threads share a multiprocessor."""
OWN_SHARED = 1024
"""Bytes of shared memory that a block has for its sums."""


def normalised(k, name, y, x, *weights):
    """y by `<name>_held`, or `<name>_walked` where a row is too long.

    A thread holds four vectors best. Two in rmsnorm: beside them there is room for its one weight
    an element, which comes while the row is reduced (`EARLY` in include/norm.cuh).
    """
    each = 4 if len(weights) > 1 else 2
    by_rows(k, name, x, (y, x, *weights), each=each, alone=each, room=RESIDENT)


WRITERS, WRITING = 2, 256
"""Blocks on a multiprocessor that write several rows at a time, and threads of each: two tiles of 8
rows lie in 128 registers."""


def split(k, name, y, x, *weights):
    """Few long rows: parts of each by many blocks; then blocks that write several rows at a time.

    Weights as long as a row come out of a cache, and would come once for each row otherwise.
    """
    rows, n = of_rows(x)
    together = next(many for many in (8, 4, 1) if many <= rows)
    groups = blocks(rows, together)
    writers = max(1, min(blocks(n, 4096), WRITERS * multiprocessors(x) // groups))
    kept, parts = in_parts(k, name, x, rows, n, 3)
    kernel = k[f"{name}_write<{k.type(x)}, {WRITING}, {together}>"]
    launch = kernel(grid=groups * writers, block=WRITING, shared=0, early=True)
    launch(y, kept, x, *weights, rows, n, parts)


def over_rows(x):
    """The sums of columns, over all dimensions but the last."""
    return x.reshape(of_rows(x)).sum(0)


def narrower(cases):
    """The cases without float64, in which the formula would be the truth, and is rounded itself."""
    return [case for case in cases if case.values["dtype"] != "float64"]


def rows_on_their_way(n: int, size: int, room: int):
    """(threads of a row, vectors a thread, blocks on a multiprocessor, rows ahead, threads of a
    block, bytes of shared memory) of the gradient's kernel that holds a row; None: it is walked.

    size: bytes of an element; room: bytes of shared memory that a block can have.
    """
    # Twice the registers a number, and 64 KB of shared memory a block, of 8 bytes an element.
    chosen = held(n, size, MOST_HELD if size <= 4 else MOST_HELD // 2, WIDEST, 2)
    if chosen is None:
        return None
    threads, each = chosen
    block = threads * (ROWS_OF_BLOCK if threads == 32 else 1)
    one = 2 * each * 16 * block  # x and dy of one row more
    if one > room:
        return None
    few = size <= 4 and each * (16 // size) <= FEW_HELD
    together = (CROWD if few else WIDEST) // block
    # Two rows where one is less than 48 KB on a multiprocessor.
    ahead = 1 if together * one >= 48 << 10 or 2 * one > room else 2
    return threads, each, together, ahead, block, ahead * one


def gradient(k, name, dx, sums, dy, x, w):
    """Fills dx and the sums over rows, (dw, db) or (dw,), with the kernels of `<name>.cu`."""
    rows, n = of_rows(x)
    if not n:
        return
    kind, size = k.type(x), x.element_size()
    room = (hardware.shared_of(k.arch) or hardware.SHARED[90]) - OWN_SHARED
    plan = rows_on_their_way(n, size, room)
    if plan is None and rows:
        kept = torch.empty(rows, 2, dtype=accumulator(x), device=x.device)
        walked = k[f"{name}_grad_walked<{kind}, {WALKERS}>"]
        walked(grid=rows, block=WALKERS, shared=0)(dx, kept, dy, x, w, n)
        columns = k[f"{name}_columns<{kind}, {ROWS[0]}, {ROWS[1]}>"]
        columns(grid=blocks(n, ROWS[0]), block=ROWS, shared=0)(*sums, kept, dy, x, rows, n)
        return
    threads, each, together, ahead, block, shared = plan or (WIDEST, 1, 1, 1, WIDEST, 0)
    lines = block // threads
    # As many blocks as fit, each with `most` rows or less. Then as few as need no more than that,
    # for each has partial sums to be read again; but no multiprocessor is left without one.
    places = multiprocessors(x)
    most = max(1, blocks(rows, places * together * lines))
    grid = max(blocks(rows, most * lines), min(places, blocks(rows, lines)))
    partial = torch.empty(grid * lines, len(sums), n, dtype=accumulator(x), device=x.device)
    if grid:
        own = k[f"{name}_grad_held<{kind}, {threads}, {each}, {together}, {ahead}>"]
        own(grid=grid, block=block, shared=shared)(dx, partial, dy, x, w, rows, n)
    added = k[f"{name}_partials<{kind}, {PARTIALS[0]}, {PARTIALS[1]}>"]
    added(grid=blocks(n, PARTIALS[0]), block=PARTIALS, shared=0, early=True)(
        *sums, partial, grid * lines, n
    )


MOST_SUMMED, SUMMING = 1 << 13, 512
"""Elements of a row that a program of Triton holds five times, 16 a thread; and threads of those
that share a multiprocessor: more of them add more parts."""


def summable(n):
    """Where a program of Triton can hold a row, its slope and what it sums: for `when`."""
    return n <= MOST_SUMMED or f"meant for rows of up to {MOST_SUMMED:,} elements"


def gradient_by_triton(dx, sums, dy, x, w, eps):
    """Fills dx and the sums over rows, (dw, db) or (dw,)."""
    from .norms_triton import held_gradient_kernel, partials_kernel

    rows, n = of_rows(x)
    if not n:
        return
    columns, centred = power(n), len(sums) == 2
    warps = min(16, max(1, columns // 512))
    programs = min(rows, multiprocessors(x) * max(1, SUMMING // (32 * warps)))
    partial = torch.empty(programs, len(sums), n, dtype=accumulator(x), device=x.device)
    if programs:
        held_gradient_kernel[(programs,)](
            dx, partial, dy, x, w, rows, n, eps, centred, columns, num_warps=warps
        )
    partials_kernel[(blocks(n, 32),)](sums[0], sums[-1], partial, programs, n, centred, 32, 32)
