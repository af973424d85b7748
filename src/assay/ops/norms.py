"""Launching what layernorm and rmsnorm share: a row a set of threads, and sums over rows."""

from __future__ import annotations

import torch

from .launching import accumulator, blocks, multiprocessors
from .rows import ROWS_OF_BLOCK, WALKERS, held, in_parts

LANES = 16
"""Rows that a block of 32 x LANES threads adds side by side."""
MOST_HELD, WIDEST = 16, 512
"""The gradient holds x, dy and two sums in registers: 16 elements a thread, 128 registers."""


WRITERS = 2
"""Blocks on a multiprocessor that write several rows at a time."""


def split(k, name, y, x, *weights):
    """Few long rows: parts of each by many blocks; then blocks that write several rows at a time.

    Weights as long as a row come out of a cache, and would come once for each row otherwise.
    """
    rows, n = x.shape
    # A thread then has 32 values of x at a time, of 2 bytes or of 4.
    together = next(many for many in (8 if x.element_size() > 2 else 4, 4, 1) if many <= rows)
    groups = blocks(rows, together)
    writers = max(1, min(blocks(n, 4096), WRITERS * multiprocessors(x) // groups))
    kept, parts = in_parts(k, name, x, rows, n, 3)
    kernel = k[f"{name}_write<{k.type(x)}, {WALKERS}, {together}>"]
    launch = kernel(grid=groups * writers, block=WALKERS, shared=0, early=True)
    launch(y, kept, x, *weights, rows, n, parts)


def narrower(cases):
    """The cases without float64, in which the formula would be the truth, and is rounded itself."""
    return [case for case in cases if case.values["dtype"] != "float64"]


def gradient(k, name, dx, sums, dy, x, w):
    """Fills dx and the sums over rows, (dw, db) or (dw,), with the kernels of `<name>.cu`."""
    rows, n = x.shape
    if not n:
        return
    kind = k.type(x)
    columns = {"grid": blocks(n, 32), "block": (32, LANES), "shared": 0}
    chosen = held(n, x.element_size(), MOST_HELD, WIDEST)
    if chosen is None and rows:
        kept = torch.empty(rows, 2, dtype=accumulator(x), device=x.device)
        walked = k[f"{name}_grad_walked<{kind}, {WALKERS}>"]
        walked(grid=rows, block=WALKERS, shared=0)(dx, kept, dy, x, w, n)
        k[f"{name}_columns<{kind}, {LANES}>"](**columns)(*sums, kept, dy, x, rows, n)
        return
    threads, each = chosen or (WIDEST, 1)
    together = ROWS_OF_BLOCK if threads == 32 else 1
    # As many blocks as fit: fewer leave some idle, more add partial sums.
    most = multiprocessors(x) * (WIDEST // (threads * together))
    grid = min(most, blocks(rows, together))
    partial = torch.empty(grid * together, len(sums), n, dtype=accumulator(x), device=x.device)
    if grid:
        own = k[f"{name}_grad_held<{kind}, {threads}, {each}>"]
        own(grid=grid, block=threads * together, shared=0)(dx, partial, dy, x, w, rows, n)
    k[f"{name}_partials<{kind}, {LANES}>"](**columns)(*sums, partial, grid * together, n)
