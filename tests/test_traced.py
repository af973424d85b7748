"""Samples by CUPTI, of a profiler that is played: several kernels in turn in one trace."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clock import beside, timing
from assay.clock.member import Member
from assay.clock.power import Reading
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

    def sample(self) -> float:
        self.prepare()
        return self.timed()[0] - self.fixed

    def forget(self) -> None:
        pass


def clock(profiler: Profiler, call: Callable[[], None], **more: Any) -> Traced:
    return Traced(Window(profiler, call, **more), profiler, 3)  # type: ignore[arg-type]


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


class Gpu:
    """Stands for what kernels share on a GPU."""

    def __init__(self, profiler: Profiler, nvml: Any = None):
        self.witness, self.fixed = profiler, 2 * US
        self.flush = SimpleNamespace(l2_bytes=1 << 20)
        self.sync_seconds = 5 * US
        self.nvml = nvml or SimpleNamespace(missing="no NVML here")
        self.aside = 0

    def persisting(self) -> int:
        found, self.aside = self.aside, 0
        return found


class Nvml:
    """Two clocks, one of them under a power cap."""

    missing = ""

    def __init__(self) -> None:
        self.reads = 0

    def processes(self) -> tuple[int, ...]:
        return (os.getpid(), 1)

    def read(self) -> Reading:
        self.reads += 1
        capped = self.reads % 2 == 0
        return Reading(1.7e9 if capped else 1.98e9, 300.0, 50.0, 0x4 * capped)


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Member]]:
    """`sampled(calls)` is the loop of the timing process over kernels on a GPU that is played."""

    def run(profiler: Profiler, clocks: list[Any], gpu: Any = None) -> list[Member]:
        made = [Member(i, c, c.call, "cuda:0", [], [[]]) for i, c in enumerate(clocks)]
        plain = SimpleNamespace(sample=lambda: 10 * US)
        played = SimpleNamespace(
            host_seconds=lambda call: 1 * US, Events=lambda *args, **more: plain
        )
        monkeypatch.setattr(beside, "events", played)
        monkeypatch.setattr(beside, "COPY_BYTES", 1 << 10)
        kept: list[int] = []
        monkeypatch.setattr(Member, "keep", lambda self, *_: kept.append(self.index))
        given = SimpleNamespace(device="cpu", seed=1, seconds=0.4, scratch="", owner=os.getppid())
        contents = SimpleNamespace(now=0, swap=lambda members: None)
        shared = SimpleNamespace(given=given, contents=contents, gpu=gpu or Gpu(profiler))
        noted = SimpleNamespace(check_timers=lambda: None)
        channel = SimpleNamespace(send=lambda **message: None)
        timing._sample(channel, shared, made, bytearray(1), noted, ())  # type: ignore[arg-type]
        assert kept == list(range(len(made))), "outputs of each are looked at once"
        return made

    return run


def test_a_schedule_pairs_traced_kernels_and_one_of_several_by_round(
    sampled: Callable[..., list[Member]],
) -> None:
    profiler, nvml = Profiler(), Nvml()
    several = SimpleNamespace(
        call=lambda: None, sample=lambda: 9 * US, method="events", calls=1, windows=5,
        fixed=2 * US, late=0, retaken=0, forget=lambda: None,
    )  # fmt: skip
    one = clock(profiler, lambda: profiler.run(5 * US))
    made = sampled(profiler, [one, several], Gpu(profiler, nvml))
    assert made[0].samples[:8] == pytest.approx([5 * US] * 8)
    assert made[0].rounds == made[1].rounds == list(range(len(made[0].rounds)))
    facts = made[0].facts
    assert len(facts["hertz"]) == len(made[0].samples)
    assert facts["held"]["software power cap"][:3] == [1, 3, 5]
    assert facts["strangers"] == [1]
    assert facts["ended"] == "interval"
    assert set(facts) == set(made[1].facts)
    assert timing._second(made[0]) == {"event_seconds": pytest.approx(5.1 * US)}
    assert timing._second(made[1]) == {}


def test_a_schedule_goes_on_without_one_that_cannot_be_told_apart(
    sampled: Callable[..., list[Member]],
) -> None:
    profiler, turn = Profiler(), itertools.count()

    def sometimes() -> None:
        for _ in range(1 + (next(turn) % 3 == 0)):
            profiler.run(5 * US)

    good, bad = clock(profiler, lambda: profiler.run(8 * US)), clock(profiler, sometimes)
    made = sampled(profiler, [good, bad])
    assert len(made[0].samples) >= 12
    assert made[1].samples == []
    said = timing._second(made[1])
    assert said["span_seconds"] is None
    assert "not the same in each" in said["uneven"]


def test_l2_that_a_kernel_sets_aside_is_noted_with_it(
    sampled: Callable[..., list[Member]],
) -> None:
    profiler = Profiler()
    gpu = Gpu(profiler)

    def takes() -> None:
        gpu.aside = 4096
        profiler.run(5 * US)

    made = sampled(
        profiler, [clock(profiler, takes), clock(profiler, lambda: profiler.run(US))], gpu
    )
    assert [member.persisting for member in made] == [4096, 0]
