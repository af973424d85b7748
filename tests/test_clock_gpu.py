"""The clock on a GPU: states of the cache, what is refused and told apart, wrong ways to time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from assay.clock.protocol import Wish
from assay.types import Row, Timing

pytestmark = [pytest.mark.gpu, pytest.mark.alone, pytest.mark.timeout(300)]

Judge = Callable[..., list[Row]]

OP = """
import ctypes
import threading
import torch
import assay

op = assay.Op(
    "double", lambda x: 2 * x, lambda make, n: (make.normal(n),), cases=assay.grid(n=[1 << 21])
)
"""


def rows(judge: Judge, source: str = "", **options: object) -> dict[str, Row]:
    given = {"device": "cuda:0", "timed": True, "budget": 0.5, **options}
    return {row.variant: row for row in judge(OP + source, **given)}


def timing(judge: Judge, state: str) -> Timing:
    row = rows(judge, variants=("eager",), wish=Wish(cache=state))["eager"]
    assert row.timing, row.not_timed
    return row.timing


def test_states_of_the_l2_differ_as_they_must(judge: Judge) -> None:
    hot, cold, dirty, rotated = (timing(judge, s) for s in ("hot", "cold", "dirty", "rotated"))
    assert [t.cache for t in (hot, cold, dirty, rotated)] == [
        "hot",
        "cold L2",
        "cold, dirty L2",
        "rotated",
    ]
    assert cold.median > 1.2 * hot.median, "16 MB come from DRAM, or from the L2"
    assert dirty.median > 0.95 * cold.median
    assert rotated.median > 1.1 * hot.median
    assert rotated.sets > 1
    assert cold.working_bytes == 1 << 24
    assert cold.cache_bytes
    assert cold.cache_bytes > cold.working_bytes


def test_host_device_wall_memory_and_period_are_told_apart(judge: Judge) -> None:
    wish = Wish(period=True, sustained=1.0)
    found = rows(
        judge,
        """
@op.variant("eager/two")
def two(x):
    return (x * 4) / 2
""",
        wish=wish,
    )
    one, two = (found[name].timing for name in ("eager", "eager/two"))
    assert one
    assert two
    assert (one.kernels, two.kernels) == (1, 2)
    assert one.memory
    assert two.memory
    assert (one.memory.allocations, two.memory.allocations) == (1, 2)
    assert one.memory.bytes == 1 << 23
    assert two.memory.peak_bytes == 1 << 24
    assert one.wall_seconds
    assert one.host_seconds
    assert min(one.wall_seconds, one.host_seconds) > 1e-6
    assert one.sync_seconds
    assert one.period_seconds, one.no_period
    assert 0.5 * one.median < one.period_seconds < 1.2 * one.median, "hot, and without a gap"
    assert one.sustained
    assert 0.5 * one.median < one.sustained.period < 1.2 * one.median
    assert one.sustained.seconds >= 1.0
    assert len(one.hertz) == len(one.samples)
    assert one.sustained.by == "graphs"


def test_what_cannot_be_captured_has_no_period_and_spoils_no_other_case(judge: Judge) -> None:
    found = judge(
        OP.replace("n=[1 << 21]", "n=[1 << 20, 1 << 21]")
        + """
@op.variant("eager/waits_at_times")
def waits(x, calls=[]):
    calls.append(1)
    if x.is_cuda and torch.cuda.is_current_stream_capturing():
        float(x[0])
    return 2 * x
""",
        device="cuda:0",
        timed=True,
        budget=0.3,
        wish=Wish(period=True),
    )
    assert len(found) == 4
    for row in found:
        assert row.timing, (row.label, row.not_timed, row.reason)
        if row.variant == "eager/waits_at_times":
            assert row.timing.no_period.startswith("it can't be captured in a graph: ")


REFUSED = """
side = []

@op.variant("eager/side")
def side_stream(x):
    if not side:
        side.append(torch.cuda.Stream())
    side[0].wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side[0]):
        y = 2 * x
    y.record_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_stream(side[0])
    return y

@op.variant("eager/persisting")
def persisting(x):
    driver = ctypes.CDLL("libcuda.so.1")
    if x.is_cuda:
        assert driver.cuCtxSetLimit(6, ctypes.c_size_t(1 << 22)) == 0
    return 2 * x

@op.variant("eager/threads")
def threads(x):
    made = torch.empty_like(x)
    stream = torch.cuda.current_stream() if x.is_cuda else None
    def part(i):
        with torch.cuda.stream(stream):  # a new thread has the default stream
            torch.mul(x[i::2], 2, out=made[i::2])
    workers = [threading.Thread(target=part, args=(i,)) for i in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return made
"""


def test_what_gives_no_number_gives_its_reason_and_keeps_its_samples(judge: Judge) -> None:
    found = rows(judge, REFUSED)
    side, persisting = found["eager/side"], found["eager/persisting"]
    assert "work outside the current stream" in side.not_timed
    assert "bytes of L2 aside for persisting lines" in persisting.not_timed
    for row in (side, persisting):
        assert row.word == "right"
        assert row.timing is None
        assert row.rejected
        assert row.rejected.samples
    assert found["eager"].timing, "the limit was given back: the others are cold"
    threads = found["eager/threads"]
    said = (threads.word, threads.reason, threads.not_timed)
    assert threads.timing, said  # launches of several host threads, on one stream
    assert threads.timing.kernels == 2


REPLAY = """
@op.variant("eager/replay")
def replay(x, kept={}):
    if "y" not in kept:
        kept["y"] = 2 * x
    return kept["y"]

calls = []

@op.launcher("eager/nothing")
def nothing(y, x):
    calls.append(1)
    if len(calls) < 5:
        torch.mul(x, 2, out=y)
"""


def test_a_replayed_result_is_never_a_time(judge: Judge) -> None:
    for name, row in rows(judge, REPLAY).items():
        assert (row.timing is None) == (name != "eager"), (name, row.word, row.not_timed)
        if name == "eager/replay":
            assert row.outcome == "fail" or row.not_timed


def test_an_empty_launch_has_no_time_of_its_own() -> None:
    from assay.clock import events
    from assay.clock.gpu import gpu
    from assay.clock.plausible import refuse

    shared = gpu("cuda:0")
    nothing = events.Events(lambda: None, None, shared.flush, 0.0)
    samples = [nothing.sample() for _ in range(20)]
    null = sorted(samples)[10]
    said = refuse(samples, null, null_seconds=null, late=0, host_seconds=None, floor=None)
    assert "no more than an empty window" in said


def test_wrong_ways_to_time_are_wrong_as_the_notes_say() -> None:
    from benchmarks import clock_lessons as lessons

    clocks = lessons.three_clocks()
    assert clocks["naive"] < 0.1 * clocks["events"], "it saw the launch alone"
    assert clocks["synced"] == pytest.approx(clocks["events"], rel=0.02)
    before = lessons.queued_before()
    assert before["one wait"] > 0.004, "it paid for what was queued before"
    assert before["two waits"] < 0.001
    assert before["events"] == pytest.approx(1e-4, rel=0.1)
    line = lessons.overhead_and_rate()
    assert line["largest residual"] < 0.15
    assert line["rate"] > 1e11
    depth = lessons.queue_depth()
    assert 500 < depth["depth"] < 1500, "the queue of launches is finite"
    assert depth["queued after 500"] < 0.5 * 500e-4
    counts = lessons.launches()
    assert counts["nodes a second"] > counts["a second"] > 1e4
    assert lessons.mlp_by_time()["factor"] > 3


def test_fresh_processes_agree(judge: Judge) -> None:
    medians = []
    for _ in range(3):
        row = rows(judge, variants=("eager",))["eager"]
        assert row.timing
        medians.append(row.timing.median)
    assert (max(medians) - min(medians)) / min(medians) < 0.05
