"""Stretches of time: how they lie in one another, and how much of time they cover together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Span:
    """Something that took time. Seconds, from any origin."""

    name: str
    kind: str
    """`kernel`, `memcpy`, `memset`: work of the device; `call`: of CUDA's API; `operator`; `range`:
    named by the user; `device range`: the same as the device saw it; else as the file says."""
    start: float
    seconds: float
    place: str = ""
    """What it ran on: a stream of a device, a thread of a process."""
    link: int | None = None
    """Joins a call with the work that it started."""
    owner: int | None = None
    """Number of the operator that it belongs to, and of the operator itself."""
    facts: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def end(self) -> float:
        return self.start + self.seconds


WORK = ("kernel", "memcpy", "memset")
"""What a device is busy with. A range on the device is none: it spans kernels and gaps."""


@dataclass(frozen=True)
class Nested:
    """A span in its thread: what it lies in, outermost first, and the time that is its own."""

    span: Span
    within: tuple[Span, ...]
    own_seconds: float

    @property
    def again(self) -> bool:
        """Whether it lies in another of its name, whose time already holds it."""
        return any(outer.name == self.span.name for outer in self.within)


def nested(spans: Iterable[Span]) -> list[Nested]:
    """Each span of every place with those around it.

    A span that outlasts the one in which it began takes from that one's own time only what they
    share, so that own times never add up to more than has passed.
    """
    places: dict[str, list[Span]] = {}
    for span in spans:
        places.setdefault(span.place, []).append(span)
    return [entry for members in places.values() for entry in _one_place(members)]


def _one_place(spans: Sequence[Span]) -> list[Nested]:
    made: list[tuple[Span, tuple[Span, ...], list[float]]] = []
    open_: list[tuple[Span, list[float]]] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.seconds)):
        while open_ and open_[-1][0].end <= span.start:
            open_.pop()
        own = [span.seconds]
        made.append((span, tuple(outer for outer, _ in open_), own))
        if open_:
            outer, outer_own = open_[-1]
            outer_own[0] -= min(span.end, outer.end) - span.start
        open_.append((span, own))
    return [Nested(span, within, max(0.0, own[0])) for span, within, own in made]


def covered(spans: Iterable[Span]) -> list[tuple[float, float]]:
    """The stretches in which at least one of them is running, in order."""
    made: list[tuple[float, float]] = []
    for span in sorted(spans, key=lambda s: s.start):
        if made and span.start <= made[-1][1]:
            made[-1] = (made[-1][0], max(made[-1][1], span.end))
        else:
            made.append((span.start, span.end))
    return made


def covered_seconds(spans: Iterable[Span]) -> float:
    """How long at least one of them is running: overlapping ones count once."""
    return sum(end - start for start, end in covered(spans))
