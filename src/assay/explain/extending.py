"""Counts of a large case from those of two small ones: what is fixed, and what grows with the work.

count(w) = a + b w, field by field and line by line. A block's own atomics are in a, an element's in
b; a grid that grows with the work up to a limit is in b as well, which is too much from there on.
"""

from __future__ import annotations

from dataclasses import fields

from ..simt.counts import Access, Counts, Line


def extended(
    small: Counts, smaller: Counts, ratio: float, scale: float, times: float = 1.0
) -> Counts:
    """ratio: work of small over that of smaller, above 1. scale: how many times small's work grows
    in what smaller has less of; times: in all else, such as rows that do the same each."""
    known = {(line.file, line.line): line for line in smaller.lines}

    def grown(most: int, least: int) -> int:
        slope = (most - least) / (1 - 1 / ratio)
        return max(0, round(times * (most + slope * (scale - 1))))

    def line_of(line: Line) -> Line:
        other = known.get((line.file, line.line), Line(line.file, line.line))
        accesses = {}
        for kind, one in line.accesses.items():
            two = other.accesses.get(kind, Access())
            both = ((getattr(one, f.name), getattr(two, f.name)) for f in fields(Access))
            accesses[kind] = Access(*(grown(*pair) for pair in both))
        return Line(
            line.file,
            line.line,
            grown(line.warps, other.warps),
            grown(line.lanes, other.lanes),
            {name: grown(n, other.classes.get(name, 0)) for name, n in line.classes.items()},
            accesses,
        )

    return Counts(tuple(map(line_of, small.lines)), small.launches)
