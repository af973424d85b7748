"""A roofline as SVG, on logarithmic axes; its colours follow a reader's light or dark scheme."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from ..report.units import rate as rated
from .roofline import Point, Roofline

LEFT, TOP, WIDE, HIGH, LINE = 90, 44, 640, 360, 20
LIGHT = {"paper": "#ffffff", "ink": "#222222", "grid": "#dddddd", "memory": "#1f5fa8"} | {
    "cache": "#3d7a3d",
    "arithmetic": "#a8321f",
    "point": "#6a3d9a",
}
DARK = {"paper": "#16181c", "ink": "#e8e8e8", "grid": "#3a3f47", "memory": "#7db4f0"} | {
    "cache": "#86cf86",
    "arithmetic": "#f0907d",
    "point": "#c9a6f2",
}
INDENT = "\u2003"
"""A wide space: SVG drops plain ones at the begin of a text."""
VISIBLE = 0.1
"""Of a logarithm: a tenth more bytes."""
LINES = ("grid", "memory", "cache", "arithmetic", "point")
"""Colours that lines are drawn in."""


@dataclass(frozen=True)
class Axes:
    """Powers of ten at the ends: FLOP a byte, FLOP a second."""

    x: tuple[int, int]
    y: tuple[int, int]

    def across(self, intensity: float) -> float:
        low, high = self.x
        return LEFT + WIDE * (math.log10(intensity) - low) / (high - low)

    def down(self, rate: float) -> float:
        low, high = self.y
        return TOP + HIGH * (1 - (math.log10(rate) - low) / (high - low))


def svg(made: Roofline) -> str:
    """The whole file: ceilings with their rate and source, points by number, words below."""
    axes = _axes(made)
    said = list(_said(made))
    height = TOP + HIGH + 3 * LINE + LINE * len(said) + LINE // 2
    title = f"Roofline of {made.card.name}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDE + 40} {height}" '
        'font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f"<style>{_style()}</style>",
        f'<rect class="paper" width="{LEFT + WIDE + 40}" height="{height}"/>',
        _words(LEFT, 20, title, "ink", 'font-weight="bold"'),
        *_grid(axes),
        *_slope(axes, made, made.card.l2, "cache", "L2", "estimated"),
        *_slope(axes, made, made.card.dram, "memory", "DRAM", _source(made)),
    ]
    for ceiling in made.ceilings:
        y = axes.down(ceiling.rate)
        name = f"{ceiling.name} {rated(ceiling.rate, 'FLOP')} ({ceiling.source})"
        parts.append(_line(LEFT, y, LEFT + WIDE, y, "arithmetic", 2))
        parts.append(_words(LEFT + WIDE, y - 5, name, "arithmetic", 'text-anchor="end"'))
    for number, one in enumerate(made.points, 1):
        parts += _point(axes, number, one)
    for number, (kind, text) in enumerate(said):
        parts.append(_words(LEFT, TOP + HIGH + 3 * LINE + LINE * (number + 0.5), text, kind))
    return "\n".join([*parts, "</svg>", ""])


def _said(made: Roofline) -> Iterator[tuple[str, str]]:
    for number, one in enumerate(made.points, 1):
        yield "point", f"{number}  {one.label}"
        yield "ink", f"{INDENT}{text(one)}"
    if any(map(_apart, made.points)):
        yield "ink", "square: the same call by the bytes that it asks of L2 (counted)"
    for reason in made.absent:
        yield "ink", f"no point: {reason}"


def text(one: Point) -> str:
    """A point in words, with how far it is below what the ceilings allow there."""
    how = "measured" if one.measured else "by the model, not measured"
    limit = ""
    if one.limit is not None:
        limit = f", {one.rate / one.limit:.0%} of what {one.bound} allows"
    return f"{one.intensity:.3g} FLOP/B, {rated(one.rate, 'FLOP')} ({how}){limit}"


def _axes(made: Roofline) -> Axes:
    """Whole powers of ten around every point and the ridges, where slopes meet arithmetic."""
    peaks = [one.rate for one in made.ceilings]
    ridges = [peak / made.card.dram for peak in peaks]
    across = [one.intensity for one in made.points] + [one.asked or 1 for one in made.points]
    rates = [one.rate for one in made.points]
    x = [0.1, 10.0, *ridges, *across]
    low, high = math.floor(math.log10(min(x))), math.floor(math.log10(max(x))) + 1
    y = [*(peaks or [made.card.dram * 10**high]), *rates, made.card.dram * 10**low]
    return Axes((low, high), (math.floor(math.log10(min(y))), math.floor(math.log10(max(y))) + 1))


def _grid(axes: Axes) -> Iterator[str]:
    bottom = TOP + HIGH
    for power in range(axes.x[0], axes.x[1] + 1):
        x = axes.across(10.0**power)
        yield _line(x, TOP, x, bottom, "grid", 1)
        yield _words(x, bottom + 16, f"{10.0**power:g}", "ink", 'text-anchor="middle"')
    for power in range(axes.y[0], axes.y[1] + 1):
        y = axes.down(10.0**power)
        yield _line(LEFT, y, LEFT + WIDE, y, "grid", 1)
        yield _words(LEFT - 6, y + 4, f"{10.0**power / 1e9:,g}", "ink", 'text-anchor="end"')
    yield _words(LEFT - 6, TOP - 8, "GFLOP/s", "ink", 'text-anchor="end"')
    middle = 'text-anchor="middle"'
    yield _words(LEFT + WIDE / 2, bottom + 2 * LINE - 4, "FLOP a byte that moves", "ink", middle)


def _slope(
    axes: Axes, made: Roofline, rate: float, kind: str, name: str, source: str
) -> Iterator[str]:
    """A rate of memory, FLOP/s = FLOP a byte x rate, up to the highest ceiling of arithmetic."""
    top = max((one.rate for one in made.ceilings), default=10.0 ** axes.y[1])
    low = max(10.0 ** axes.x[0], 10.0 ** axes.y[0] / rate)
    high = min(10.0 ** axes.x[1], top / rate)
    x1, x2 = axes.across(low), axes.across(high)
    y1, y2 = axes.down(low * rate), axes.down(high * rate)
    angle = math.degrees(math.atan2(y2 - y1, x2 - x1))
    yield _line(x1, y1, x2, y2, kind, 2)
    # Near its upper end: calls that memory bounds lie along the lower one.
    x, y = x2 - 0.04 * (x2 - x1), y2 - 0.04 * (y2 - y1)
    turned = f'text-anchor="end" transform="rotate({angle:.1f} {x:.1f} {y:.1f})"'
    yield _words(x, y - 6, f"{name} {rated(rate)} ({source})", kind, turned)


def _point(axes: Axes, number: int, one: Point) -> Iterator[str]:
    x, y = axes.across(one.intensity), axes.down(one.rate)
    if _apart(one):
        assert one.asked is not None
        at = axes.across(one.asked)
        yield _line(at, y, x, y, "point", 1, 'stroke-dasharray="3 3"')
        yield f'<rect class="l-point" x="{at - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>'
    fill = "point" if one.measured else "l-point"
    head = f"<g><title>{escape(f'{one.label}: {text(one)}')}</title>"
    yield f'{head}<circle class="{fill}" cx="{x:.1f}" cy="{y:.1f}" r="5"/></g>'
    yield _words(x + 8, y + 14, str(number), "point", 'font-weight="bold"')


def _source(made: Roofline) -> str:
    return "measured" if made.card.source.startswith("measured") else "data sheet"


def _apart(one: Point) -> bool:
    """Whether what is asked of L2 differs visibly from what must move."""
    return one.asked is not None and abs(math.log(one.asked / one.intensity)) > VISIBLE


def _style() -> str:
    def rules(colours: dict[str, str]) -> str:
        fills = (f".{name}{{fill:{value}}}" for name, value in colours.items())
        lines = (f".l-{name}{{stroke:{colours[name]};fill:none}}" for name in LINES)
        return "".join([*fills, *lines])

    return f"{rules(LIGHT)}@media (prefers-color-scheme:dark){{{rules(DARK)}}}"


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, width: int, more: str = "") -> str:
    return (
        f'<path class="l-{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" '
        f'stroke-width="{width}"{" " + more if more else ""}/>'
    )


def _words(x: float, y: float, said: str, kind: str, more: str = "") -> str:
    extra = f" {more}" if more else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{extra}>{escape(said)}</text>'
