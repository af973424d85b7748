"""A tensor as a small grid of characters: what was done to which elements, seen at a glance.

Each element has a code; a character stands for a rectangle of elements. Rows of a picture are the
last dimension, all others one after the other; a vector goes on in the next row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

NONE, UNTOUCHED, SEVERAL, TOGETHER, PARTLY, HOST = -1, -2, -3, -4, -5, -6
"""Codes below 0: no element here; nobody; several unordered writers; several by atomics; some bytes
of it; something other than a kernel. From 0 on: one number, such as that of a block."""
MARKS = {NONE: " ", UNTOUCHED: ".", SEVERAL: "#", TOGETHER: "@", PARTLY: "x", HOST: "o"}
LETTERS = "0123456789abcdefghijklmnpqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Without the `o` and `x` of the marks."""
MIXED = "+"
"""Different numbers in one character, each element with one."""
WIDTH, HEIGHT = 64, 16
"""Cells of a vector's row, which then begins at a power of two, and rows, at most."""
NARROW = 56
"""Cells of a row where its label has several numbers: 80 columns with it."""


@dataclass(frozen=True)
class Cell:
    """A rectangle of elements: the codes that occur in it."""

    low: int
    high: int
    marks: frozenset[int]
    """Those below 0."""


@dataclass(frozen=True)
class Grid:
    """Cells in rows, with the index of each row's first element and what a cell spans."""

    cells: tuple[tuple[Cell, ...], ...]
    starts: tuple[tuple[int, ...], ...]
    rows_each: int
    columns_each: int


def grid(codes: Any, width: int = 0, height: int = HEIGHT) -> Grid:
    """The codes of a tensor, at most `height` rows of `width` cells; 0: what 80 columns take."""
    shape, starts = codes.shape, list[tuple[int, ...]]()
    width = width or (WIDTH if len(shape) < 2 else NARROW)
    if not codes.size:
        return Grid((), (), 1, 1)
    if len(shape) < 2:
        each = _power(math.ceil(codes.size / (width * height)))
        across = min(width, math.ceil(codes.size / each)) * each
        lines = math.ceil(codes.size / across)
        flat = np.full(lines * across, NONE, np.int64)
        flat[: codes.size] = codes.reshape(-1)
        table, down = flat.reshape(lines, across), 1
        starts = [(line * across,) if shape else () for line in range(lines)]
    else:
        table = codes.reshape(-1, shape[-1])
        each, down = _power(math.ceil(shape[-1] / width)), _power(math.ceil(len(table) / height))
        firsts = range(0, len(table), down)
        starts = [tuple(int(i) for i in np.unravel_index(row, shape[:-1])) for row in firsts]
    return Grid(_cells(table, down, each), tuple(starts), down, each)


def _power(least: int) -> int:
    """The next power of two: blocks of kernels have such sizes, and then lie within a cell."""
    return 1 << max(0, least - 1).bit_length()


def _cells(table: Any, down: int, across: int) -> tuple[tuple[Cell, ...], ...]:
    def over(function: Any, values: Any) -> Any:
        rows = function.reduceat(values, np.arange(0, table.shape[0], down), axis=0)
        return function.reduceat(rows, np.arange(0, table.shape[1], across), axis=1)

    low = over(np.minimum, np.where(table >= 0, table, np.iinfo(np.int64).max))
    high = over(np.maximum, table)
    marks = {mark: over(np.logical_or, table == mark) for mark in MARKS}
    found = [
        tuple(
            Cell(
                int(low[r, c]),
                int(high[r, c]),
                frozenset(mark for mark in MARKS if marks[mark][r, c]),
            )
            for c in range(low.shape[1])
        )
        for r in range(low.shape[0])
    ]
    return tuple(found)


def character(cell: Cell, name: Callable[[int], str]) -> str:
    """`.` where nobody was, `x` where somebody was in a part, else who."""
    marks = cell.marks - {NONE}
    some = cell.high >= 0 or marks - {UNTOUCHED}
    if PARTLY in marks or (UNTOUCHED in marks and some):
        return MARKS[PARTLY]
    for mark in (SEVERAL, TOGETHER):
        if mark in marks:
            return MARKS[mark]
    if cell.high >= 0:
        return name(cell.high) if cell.low == cell.high and not marks else MIXED
    return MARKS[min(marks)] if marks else MARKS[NONE]


def letter(number: int) -> str:
    """The character of a block or thread; they begin anew after Z."""
    return LETTERS[number % len(LETTERS)]


def times(number: int) -> str:
    """How often, up to 9."""
    return str(number) if number < 10 else "*"


def lines(drawn: Grid, name: Callable[[int], str] = letter) -> list[str]:
    """The rows as text, each with the index of its first element."""
    labels = [f"[{', '.join(map(str, start))}]" for start in drawn.starts]
    room = max(map(len, labels), default=0)
    rows = ["".join(character(cell, name) for cell in row) for row in drawn.cells]
    return [f"{label:>{room}} {row}".rstrip() for label, row in zip(labels, rows)]


def span(drawn: Grid) -> str:
    """What a character stands for: `a character is 2 x 16 elements`."""
    if drawn.rows_each == 1 and drawn.columns_each == 1:
        return "a character is one element"
    if drawn.rows_each == 1:
        return f"a character is {drawn.columns_each:,} elements"
    return f"a character is {drawn.rows_each:,} x {drawn.columns_each:,} elements"
