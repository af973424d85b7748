"""Samples by CUPTI, of a profiler that is played: several kernels in turn in one trace."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clock.traced import BLOCK, Traced, blocks, durations, unguarded
from assay.clock.witness import Seen, seen

US = 1e-6


@dataclass
class Profiler:
    """Stands for a GPU and CUPTI: what is run while it traces comes back as events."""

    missing: str = ""
    ran: list[dict[str, Any]] = field(default_factory=list)
    traces: int = 0

    def run(self, seconds: float, stream: int = 7) -> None:
        ts = 10.0 * len(self.ran)
        self.ran.append({"ts": ts, "dur": 1e6 * seconds, "name": "k", "args": {"stream": stream}})

    def mark(self) -> None:
        self.run(1 * US)

    def trace(self, calls: Callable[[], object]) -> list[dict[str, Any]]:
        self.ran = []
        self.traces += 1
        calls()
        return self.ran

    def watch_taken(self, takes: list[Callable[[], None]], prepared: int) -> Seen:
        events = self.trace(lambda: [take() for take in takes])
        return seen(len(takes) * prepared, events, len(takes))


@dataclass
class Window:
    """Stands for events: preparing runs a flush and a wait, and what they read is too long."""

    profiler: Profiler
    call: Callable[[], None]
    fixed: float = 2 * US
    late: int = 0
    retaken: int = 0
    lates: bool = False

    def unhurried(self, times: float) -> Window:
        return self

    def prepare(self) -> None:
        self.profiler.run(3 * US)
        self.profiler.run(50 * US)

    def timed(self) -> tuple[float, bool]:
        self.call()
        return 1e-6 * self.profiler.ran[-1]["dur"] + 2.1 * US, self.lates

    def forget(self) -> None:
        pass


def clock(profiler: Profiler, call: Callable[[], None], **more: Any) -> Traced:
    return Traced(Window(profiler, call, **more), profiler, prepared=3)  # type: ignore[arg-type]


def test_each_clock_gets_the_durations_of_its_own_calls_in_one_trace() -> None:
    profiler = Profiler()
    one, other = (clock(profiler, lambda s=s: profiler.run(s * US)) for s in (5, 8))
    found = blocks([one, other], random.Random(0), unguarded)
    assert profiler.traces == 1
    assert found[0] == pytest.approx([5 * US] * BLOCK)
    assert found[1] == pytest.approx([8 * US] * BLOCK)
    assert one.event_seconds == pytest.approx(5.1 * US), "the second clock, on the same calls"
    assert (one.late, one.uneven) == (0, "")


def test_one_that_runs_more_at_times_loses_its_own_samples_alone() -> None:
    profiler, calls = Profiler(), [0]

    def sometimes() -> None:
        calls[0] += 1
        for _ in range(1 + (calls[0] % 3 == 0)):
            profiler.run(5 * US)

    good, bad = clock(profiler, lambda: profiler.run(8 * US)), clock(profiler, sometimes)
    found = blocks([good, bad], random.Random(0), unguarded)
    assert found == {0: pytest.approx([8 * US] * BLOCK), 1: []}
    assert "not the same in each" in bad.uneven
    assert not good.uneven


def test_work_on_another_stream_gives_no_sample() -> None:
    profiler = Profiler()
    strays = clock(profiler, lambda: profiler.run(5 * US, stream=9))
    assert blocks([strays], random.Random(0), unguarded) == {0: []}
    assert strays.uneven


def test_a_call_that_waits_for_the_gpu_is_late_in_every_sample() -> None:
    profiler = Profiler()
    waits = clock(profiler, lambda: profiler.run(5 * US), lates=True)
    assert len(blocks([waits], random.Random(0), unguarded)[0]) == BLOCK
    assert waits.late == BLOCK
    assert waits.event_seconds is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 1000)), min_size=1, max_size=20))
def test_durations_are_those_behind_what_prepared_each(turns: list[tuple[int, int]]) -> None:
    events = []
    for prepared, length in turns:
        for duration in [2000] * prepared + [length]:
            events.append({"ts": len(events), "dur": duration, "args": {"stream": 7}})
    found = durations(events, [prepared for prepared, _ in turns])
    assert found == pytest.approx([1e-6 * length for _, length in turns])
    assert durations(events + events[:1], [prepared for prepared, _ in turns]) is None
