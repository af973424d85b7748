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
    named by the user; `device range`: the same as the device saw it; `memory`: a moment of the
    allocator; else as the file says."""
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


ROUNDING = 2e-9
"""Seconds: microseconds of a machine's uptime, as a double, are only so exact."""


def nested(spans: Iterable[Span]) -> list[Nested]:
    """Each span of every place with those that hold it.

    A moment is the own time of the span that began last of those that are running. So own times of
    a place add up to what its spans cover together, also where one outlasts the one in which it
    began, as clocks that disagree leave it; such a span lies beside that one, not within it.
    """
    places: dict[str, list[Span]] = {}
    for span in spans:
        places.setdefault(span.place, []).append(span)
    return [entry for members in places.values() for entry in _one_place(members)]


def _one_place(spans: Sequence[Span]) -> list[Nested]:
    order = sorted(spans, key=lambda s: (s.start, -s.seconds))
    own = [0.0] * len(order)
    within: list[tuple[Span, ...]] = []
    running: list[int] = []  # by their begin; those below the last may have ended
    now = 0.0
    for number, span in enumerate(order):
        now = _pass(order, running, own, now, span.start)
        held = (order[n] for n in running)
        within.append(tuple(s for s in held if s.end >= max(span.end - ROUNDING, now)))
        running.append(number)
    _pass(order, running, own, now, float("inf"))
    return [Nested(span, inside, time) for span, inside, time in zip(order, within, own)]


def _pass(
    order: Sequence[Span], running: list[int], own: list[float], now: float, until: float
) -> float:
    """Gives out the time from now until then, ends what has ended, and returns that moment."""
    while running and now < until:
        last = running[-1]
        end = min(order[last].end, until)
        if end > now:
            own[last] += end - now
            now = end
        if order[last].end <= now:
            running.pop()
    return until


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
