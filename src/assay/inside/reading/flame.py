"""A flame graph of a trace: time by stack of Python functions, operators and CUDA calls, as SVG.

A frame is as wide as the time of all calls with the same stack, its own and that of what it calls;
frames of one stack are merged, so that left and right mean nothing but the alphabet. `folded` has
the same as lines of text that other tools for flame graphs take.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from .spans import nested
from .trace import Trace

KINDS = ("python", "range", "operator", "call")
COLOURS = {"python": "#a0cbe8", "range": "#edc948", "operator": "#8cd17d", "call": "#ffbe7d"}
WIDTH, HEIGHT, LETTER = 1200.0, 17, 6.3
LEAST = 0.3
"""Frames narrower than so many units are left out; what is left out is said."""
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Of an object: the same method of another one is the same frame."""


@dataclass
class Frame:
    """One stack of calls, and those on top of it."""

    name: str
    kind: str = ""
    own_seconds: float = 0.0
    inner: dict[str, Frame] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Its own and that of all on top of it."""
        return self.own_seconds + sum(frame.seconds for frame in self.inner.values())

    @property
    def depth(self) -> int:
        return 1 + max((frame.depth for frame in self.inner.values()), default=0)


def frames(trace: Trace) -> Frame:
    """The tree of stacks; below its root a frame for each thread. Empty without such spans."""
    root = Frame(trace.file)
    for entry in nested(trace.of(*KINDS)):
        at = root.inner.setdefault(entry.span.place, Frame(f"thread {entry.span.place}"))
        for span in (*entry.within, entry.span):
            name = ADDRESS.sub("", span.name)
            at = at.inner.setdefault(name, Frame(name, span.kind))
        at.own_seconds += entry.own_seconds
    return root


def folded(root: Frame) -> Iterator[str]:
    """`thread;main;aten::mm 513`: each stack with its own time in whole microseconds, if any."""
    for frame in root.inner.values():
        yield from _folded(frame, "")


def _folded(frame: Frame, below: str) -> Iterator[str]:
    stack = below + frame.name.replace(";", ",")
    own = round(frame.own_seconds * 1e6)
    if own:
        yield f"{stack} {own}"
    for inner in frame.inner.values():
        yield from _folded(inner, f"{stack};")


def svg(root: Frame) -> str:
    """The whole file; what a frame is and took shows where the pointer rests on it."""
    total, height = root.seconds, (root.depth + 1) * HEIGHT
    parts: list[str] = []
    hidden = _draw(root, 0.0, 0, total, parts) if total else 0
    note = f"{total * 1e6:,.1f} us on {len(root.inner)} threads"
    if hidden:
        note += f"; {hidden:,} stacks are too narrow to be drawn"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height}"'
    style = ' font-family="monospace" font-size="10.5">'
    words = f'<text x="2" y="{height - 5}">{escape(note)}</text>'
    return "\n".join([head + style, f"<title>{escape(root.name)}</title>", *parts, words, "</svg>"])


def _draw(frame: Frame, left: float, level: int, total: float, parts: list[str]) -> int:
    """Adds a frame and those on top of it; returns how many are too narrow."""
    hidden = 0
    for inner in sorted(frame.inner.values(), key=lambda f: f.name):
        width = inner.seconds / total * WIDTH
        if width < LEAST:
            hidden += 1
            continue
        parts.append(_box(inner, left, level, width, total))
        hidden += _draw(inner, left, level + 1, total, parts)
        left += width
    return hidden


def _box(frame: Frame, left: float, level: int, width: float, total: float) -> str:
    said = f"{frame.name}: {frame.seconds * 1e6:,.1f} us, {frame.seconds / total:.1%}"
    fits = int(width / LETTER)
    name = frame.name if len(frame.name) <= fits else f"{frame.name[: max(0, fits - 2)]}.."
    text = f'<text x="{left + 2:.1f}" y="{level * HEIGHT + 12}">{escape(name)}</text>'
    colour = COLOURS.get(frame.kind, "#d7d7d7")
    return (
        f'<g><title>{escape(said)}</title><rect x="{left:.1f}" y="{level * HEIGHT}" '
        f'width="{width:.1f}" height="{HEIGHT - 1}" fill="{colour}"/>{text if fits > 3 else ""}</g>'
    )
