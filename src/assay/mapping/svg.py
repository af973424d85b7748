"""The coverage map as a picture: an SVG file of our own writing, which every browser shows.

A tensor is a grid of rectangles, a colour a block; what nobody wrote is white between red lines.
"""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from .. import drawing
from ..drawing import HOST, PARTLY, SEVERAL, TOGETHER, UNTOUCHED, Cell
from .model import CoverageMap, Tensor
from .text import codes, summary, unit_of

SIDE, LABEL, LINE = 9, 90, 18
COLUMNS, ROWS = 96, 48
COLOURS = (
    *("#4e79a7", "#f28e2b", "#59a14f", "#76b7b2", "#edc948", "#b07aa1", "#9c755f", "#86bcb6"),
    *("#a0cbe8", "#ffbe7d", "#8cd17d", "#d4a6c8"),
)
"""Of blocks and threads, in turn: told apart by most people who see colours differently."""
MARKS = {
    UNTOUCHED: ("none", "not written"),
    SEVERAL: ("#e15759", "written by several, not by atomics alone"),
    TOGETHER: ("#d37295", "changed by several, by atomic operations"),
    PARTLY: ("#ff9d9a", "written in part"),
    HOST: ("#bab0ac", "written by none of the kernels"),
}
MIXED = "#79706e"


def svg(found: CoverageMap, *, by: str = "block", only: str = "") -> str:
    """The whole file."""
    y, parts = LINE, []
    title = f"{found.op}  {found.label}  {found.case}".rstrip()
    parts.append(_words(0, y, title, "bold"))
    for launch, one in enumerate(found.launches):
        y += LINE
        parts.append(_words(0, y, f"launch {launch}: {one.text}"))
    for tensor in found.tensors.values():
        if (only and tensor.name != only) or not tensor.size or not tensor.known:
            continue
        y += 2 * LINE
        size = f"{tensor.name}  {tensor.dtype} {list(tensor.shape)}: "
        parts.append(_words(0, y, size + summary(tensor, unit_of(found))))
        rows, height = _tensor(tensor, y + LINE // 2, by)
        parts += rows
        y += height + LINE // 2
    width = LABEL + COLUMNS * SIDE + LINE
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + LINE}"'
    style = ' font-family="monospace" font-size="11">'
    return "\n".join([head + style, f"<title>{escape(title)}</title>", *parts, "</svg>", ""])


def _words(x: int, y: int, said: str, weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" font-weight="{weight}">{escape(said)}</text>'


def _tensor(tensor: Tensor, top: int, by: str) -> tuple[list[str], int]:
    """Rectangles of one tensor, neighbours of one colour in one, and their height."""
    reads = tensor.role == "input" and not tensor.total.write_counts.any()
    counts = tensor.read_counts
    given: Any = (
        np.where(counts == 0, UNTOUCHED, counts) if reads else codes(tensor.total, by, tensor.left)
    )
    picture = drawing.grid(given, COLUMNS, ROWS)
    made = []
    for number, (row, start) in enumerate(zip(picture.cells, picture.starts)):
        y = top + number * SIDE
        if number % 4 == 0:
            made.append(_words(0, y + SIDE, str(list(start))))
        faces = [_face(cell, "times read" if reads else by) for cell in row]
        column = 0
        while column < len(faces):
            end = column
            while end < len(faces) and faces[end] == faces[column]:
                end += 1
            if faces[column] is not None:
                made.append(_box(LABEL + column * SIDE, y, (end - column) * SIDE, *faces[column]))
            column = end
    return made, len(picture.cells) * SIDE


def _face(cell: Cell, by: str) -> Any:
    """(colour, what it means) of a cell; None where there is no element."""
    marks = cell.marks - {drawing.NONE}
    if not marks and cell.high < 0:
        return None
    if UNTOUCHED in marks and (cell.high >= 0 or marks != {UNTOUCHED}):
        return MARKS[PARTLY]
    for mark in (PARTLY, SEVERAL, TOGETHER):
        if mark in marks:
            return MARKS[mark]
    if cell.high < 0:
        return MARKS[min(marks)]
    if marks or cell.low != cell.high:
        return MIXED, f"{by}: {cell.low} to {cell.high}"
    return COLOURS[cell.low % len(COLOURS)], f"{by}: {cell.low}"


def _box(x: int, y: int, width: int, colour: str, said: str) -> str:
    edge = ' stroke="#e15759" stroke-width="0.5"' if colour == "none" else ""
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{SIDE - 1}" fill="{colour}"{edge}>'
        f"<title>{escape(said)}</title></rect>"
    )
