"""Ratios and their intervals on one logarithmic axis: a forest plot as text, and as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .model import CANNOT_TELL, FASTER, SAME, SLOWER, Comparison, Pair

WIDTH = 41
"""Characters of an axis; odd, so that 1 is one of them."""
LEAST, MOST = math.log(1.05), math.log(100.0)
"""The axis reaches at least and at most so far to either side."""


@dataclass(frozen=True)
class Axis:
    """From 1 / exp(reach) to exp(reach), with 1 in the middle."""

    reach: float

    def place(self, ratio: float) -> float:
        """0 at the left end, 1 at the right one; beyond them outside."""
        logarithm = math.log(ratio) if 0 < ratio < math.inf else math.copysign(1e9, ratio - 0.5)
        return (logarithm / self.reach + 1) / 2

    @property
    def ends(self) -> tuple[float, float]:
        """The ratios at its ends."""
        return math.exp(-self.reach), math.exp(self.reach)


def axis(ratios: Sequence[tuple[float, float, float]], margin: float) -> Axis:
    """One that holds every ratio, the margin, and the intervals if they are not far longer."""
    middles = max((abs(math.log(middle)) for _, middle, _ in ratios), default=0.0)
    ends = [abs(math.log(x)) for low, _, high in ratios for x in (low, high) if 0 < x < math.inf]
    wanted = min(max(ends, default=0.0), max(2 * middles, 4 * LEAST))
    return Axis(min(MOST, 1.1 * max(LEAST, middles, wanted, 1.5 * math.log1p(margin))))


def line(at: Axis, low: float, middle: float, high: float, margin: float) -> str:
    """`      :  |--o---:       `: `|` at 1, `:` at the margins, `<` and `>` where it goes on."""
    cells = [" "] * WIDTH
    for ratio, mark in ((1 - margin, ":"), (1 + margin, ":"), (1.0, "|")):
        cells[_cell(at, ratio)] = mark
    first, last = _cell(at, low), _cell(at, high)
    for cell in range(first, last + 1):
        if cells[cell] == " ":
            cells[cell] = "-"
    if at.place(low) < 0:
        cells[0] = "<"
    if at.place(high) > 1:
        cells[-1] = ">"
    cells[_cell(at, middle)] = "o"
    return "".join(cells)


def _cell(at: Axis, ratio: float) -> int:
    return min(WIDTH - 1, max(0, round(at.place(ratio) * (WIDTH - 1))))


def scale(at: Axis) -> str:
    """The numbers of the axis, above the lines."""
    low, high = (f"{end:.3g}" for end in at.ends)
    half = (WIDTH - 1) // 2
    return f"{low:<{half}}1{high:>{half}}"


SIDE, LEFT, PLOT, RIGHT = 20, 330, 360, 250
COLOURS = {SLOWER: "#e15759", FASTER: "#59a14f", SAME: "#4e79a7", CANNOT_TELL: "#79706e"}


def svg(found: Comparison) -> str:
    """The whole file: a line a pair, the margin in grey, the mean of all at the bottom."""
    said = found.summary
    drawn = [p for p in found.pairs if p.ratio is not None]
    at = axis([_ends(p) for p in drawn], said.margin)
    parts = [_words(5, SIDE, f"B / A   A: {said.a}   B: {said.b}", "bold")]
    top, bottom = 2 * SIDE, (len(drawn) + 4) * SIDE
    left, right = (_x(at, ratio) for ratio in (1 - said.margin, 1 + said.margin))
    parts.append(
        f'<rect x="{left:.1f}" y="{top}" width="{right - left:.1f}" height="{bottom - top}" '
        'fill="#eeeeee"/>'
    )
    middle = _x(at, 1.0)
    parts.append(
        f'<line x1="{middle:.1f}" y1="{top}" x2="{middle:.1f}" y2="{bottom}" stroke="#79706e"/>'
    )
    for number, pair in enumerate(drawn):
        y = (number + 3) * SIDE
        name = " ".join(filter(None, (pair.op, pair.label, pair.case)))
        parts += _drawn(at, y, name, _ends(pair), pair.word, COLOURS[pair.word])
    if said.ratio is not None and said.low is not None and said.high is not None:
        ends = (said.low, said.ratio, said.high)
        parts += _drawn(at, bottom - SIDE // 2, "geometric mean", ends, "", "#000000")
    low, high = at.ends
    for x, text in ((LEFT, f"{low:.3g}"), (middle, "1"), (LEFT + PLOT - 20, f"{high:.3g}")):
        parts.append(_words(x, bottom + SIDE, text))
    size = f"0 0 {LEFT + PLOT + RIGHT} {bottom + 2 * SIDE}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}"'
    style = ' font-family="monospace" font-size="11">'
    return "\n".join([head + style, "<title>B / A</title>", *parts, "</svg>", ""])


def _ends(pair: Pair) -> tuple[float, float, float]:
    assert pair.low is not None
    assert pair.ratio is not None
    assert pair.high is not None
    return pair.low, pair.ratio, pair.high


def _x(at: Axis, ratio: float) -> float:
    return LEFT + PLOT * min(1.0, max(0.0, at.place(ratio)))


def _drawn(
    at: Axis, y: int, name: str, ends: tuple[float, float, float], word: str, colour: str
) -> list[str]:
    low, middle, high = (_x(at, ratio) for ratio in ends)
    said = f"{ends[1]:.4g} ({ends[0]:.4g} to {ends[2]:.4g})  {word}".rstrip()
    shown = name if len(name) <= 48 else name[:45] + "..."
    return [
        f"<g><title>{escape(name)}: {said}</title>",
        _words(5, y + 4, shown),
        f'<line x1="{low:.1f}" y1="{y}" x2="{high:.1f}" y2="{y}" stroke="{colour}" '
        'stroke-width="2"/>',
        f'<circle cx="{middle:.1f}" cy="{y}" r="4" fill="{colour}"/>',
        _words(LEFT + PLOT + 10, y + 4, said),
        "</g>",
    ]


def _words(x: float, y: int, said: str, weight: str = "normal") -> str:
    return f'<text x="{x:.0f}" y="{y}" font-weight="{weight}">{escape(said)}</text>'
