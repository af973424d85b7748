"""One sample of a call that is one kernel: its duration by CUPTI, with events round it as well.

Where two events fall on their clock moves by up to 0.2 us from window to window and from process to
process, which is 1 % of 20 us; CUPTI's start and end of one kernel do not. Tracing stretches the
gaps between kernels, so calls of several are timed by events alone.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .events import Events
from .witness import Witness

BLOCK = 8
"""Rounds that share a trace, which takes some milliseconds to begin and to read."""
METHOD = "cupti"
SLOWER = 2.0
"""Launching takes so much longer while it is traced."""


@dataclass
class Traced:
    """Samples one call of one kernel on a GPU, several at a time."""

    events: Events
    """Prepares each call, and times it as well: the two clocks must agree."""
    witness: Witness
    prepared: int
    """Kernels, copies and fills that preparing a call runs on the current stream."""
    windows: int = 1
    calls: int = 1
    method: str = METHOD
    uneven: str = ""
    """How calls differed in what they ran: those gave no sample."""
    beside: list[float] = field(default_factory=list)
    """What events read of the same calls, their fixed cost taken off."""
    _late: int = 0

    def __post_init__(self) -> None:
        self._calm = self.events.unhurried(SLOWER)

    @property
    def call(self) -> Callable[[], None]:
        return self.events.call

    @property
    def fixed(self) -> float:
        return self.events.fixed

    @property
    def late(self) -> int:
        """Samples that say nothing: what events read counts only where the launch was hidden, and
        CUPTI needs no hiding. All of them, if no launch was ever hidden: then the call waits."""
        return 0 if self.beside else self._late

    @property
    def retaken(self) -> int:
        return 0

    @property
    def event_seconds(self) -> float | None:
        """Median of the same calls by events."""
        return statistics.median(self.beside) if self.beside else None

    def forget(self) -> None:
        """What was seen while warming up is over."""
        self.events.forget()

    def sample(self) -> float:
        """Seconds by events, in a window of its own: for warming up."""
        return self.events.sample()

    def take(self) -> None:
        """One call within a trace, prepared as any; what events read of it is kept."""
        self.witness.mark()
        self._calm.prepare()
        seconds, late = self._calm.timed()
        self._late += late
        if not late:
            self.beside.append(seconds - self.fixed)

    def block(self) -> list[float]:
        """Seconds of BLOCK calls in a trace of their own; none where they can't be told apart,
        and `uneven` says why."""
        found = self.witness.watch_taken([self.take] * BLOCK, self.prepared)
        if found is None:
            self.uneven = self.witness.missing
            return []
        if found.uneven or found.kernels != 1 or found.elsewhere:
            self.uneven = found.uneven or "calls ran other kernels than at first"
            return []
        return list(found.spans)


Guard = Callable[[Traced, Callable[[], None]], None]


def unguarded(_: Traced, take: Callable[[], None]) -> None:
    """For calls that nobody else is to be kept from."""
    take()


def together(turns: Sequence[Traced], guard: Guard) -> list[float] | None:
    """A sample of each turn, in that order, in one trace; None if not just that ran.

    guard: is given each clock and its call, and makes it.
    """

    def calls() -> None:
        for clock in turns:
            guard(clock, clock.take)

    events = turns[0].witness.trace(calls)
    return durations(events, [clock.prepared for clock in turns])


def durations(events: Sequence[dict[str, Any]], prepared: Sequence[int]) -> list[float] | None:
    """Seconds of the one kernel that each turn ran behind what prepared it; None if counts differ.

    Events are those of witness.py, the first of them on the current stream.
    """
    if len(events) != sum(prepared) + len(prepared):
        return None
    stream, at, found = events[0]["args"]["stream"], 0, []
    if any(event["args"]["stream"] != stream for event in events):
        return None
    for before in prepared:
        found.append(1e-6 * float(events[at + before]["dur"]))
        at += before + 1
    return found


def blocks(clocks: Sequence[Traced], order: random.Random, guard: Guard) -> dict[int, list[float]]:
    """BLOCK samples of each clock, by its place, round robin in random order.

    Where the trace is not what it should be, each clock gets a trace of its own: whoever is uneven
    then gives no samples.
    """
    every = range(len(clocks))
    places = [place for _ in range(BLOCK) for place in order.sample(every, len(every))]
    made = together([clocks[place] for place in places], guard)
    if made is None:
        return {
            place: _alone(clock, guard) for place, clock in enumerate(clocks) if not clock.uneven
        }
    return {place: [t for at, t in zip(places, made) if at == place] for place in every}


def _alone(clock: Traced, guard: Guard) -> list[float]:
    made: list[float] = []
    guard(clock, lambda: made.extend(clock.block()))
    return made
