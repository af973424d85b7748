"""The timing process: what is timed, what is refused, and who is named when it goes wrong."""

from __future__ import annotations

import time
from collections.abc import Callable

from assay.types import Row

Judge = Callable[..., list[Row]]

HEAD = """
import os
import time
import torch
import assay

op = assay.Op(
    "twice",
    lambda x: 2 * x,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[1000]),
)
"""


def one(rows: list[Row], variant: str) -> Row:
    found = [row for row in rows if row.variant == variant]
    assert len(found) == 1, [r.label for r in rows]
    return found[0]


def test_right_kernels_of_a_case_share_one_schedule_and_keep_every_sample(judge: Judge) -> None:
    rows = judge(
        HEAD
        + """
@op.variant("eager/sum")
def added(x):
    return x + x

@op.launcher("eager/fills")
def fills(y, x):
    torch.mul(x, 2, out=y)
""",
        timed=True,
    )
    timings = [row.timing for row in rows]
    assert all(timings)
    assert len({t.schedule for t in timings if t}) == 1
    for timing in timings:
        assert timing is not None
        assert len(timing.samples) == len(timing.rounds) >= 12
        assert timing.low <= timing.median <= timing.high
        assert min(timing.samples) > 0
        assert timing.method == "wall"
        assert timing.threads
        assert timing.copy_rate
        assert timing.copy_rate > 1e8


def test_an_answer_kept_by_identity_is_right_apart_and_stale_when_timed(judge: Judge) -> None:
    rows = judge(
        HEAD
        + """
kept = {}

@op.variant("eager/kept")
def keeps(x):
    if id(x) not in kept:
        kept[id(x)] = (x, 2 * x)
    return kept[id(x)][1]
""",
        timed=True,
    )
    row = one(rows, "eager/kept")
    assert row.outcome == "fail"
    assert row.timing is None
    assert "in the timed calls" in row.reason
    assert one(rows, "eager").timing


def test_a_kernel_that_ends_the_timing_process_is_named_and_the_rest_timed(judge: Judge) -> None:
    rows = judge(
        HEAD
        + """
calls = []

@op.variant("eager/fragile")
def fragile(x):
    calls.append(1)
    if len(calls) > 6:
        os.abort()
    return 2 * x
""",
        timed=True,
    )
    row = one(rows, "eager/fragile")
    assert (row.outcome, row.word) == ("fail", "crashed")
    assert "SIGABRT" in row.reason
    assert "when timed" in row.reason
    assert one(rows, "eager").timing


def test_a_kernel_that_raises_only_when_timed_keeps_the_others(judge: Judge) -> None:
    rows = judge(
        HEAD
        + """
calls = []

@op.variant("eager/tired")
def tired(x):
    calls.append(1)
    if len(calls) > 3:
        raise ValueError("enough")
    return 2 * x
""",
        timed=True,
    )
    assert "enough" in one(rows, "eager/tired").reason
    assert one(rows, "eager/tired").outcome == "fail"
    assert one(rows, "eager").timing


def test_what_an_op_mutates_is_restored_before_every_sample(judge: Judge) -> None:
    rows = judge(
        """
import torch
import assay

op = assay.Op(
    "triple_",
    lambda x: 3 * x,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[1000]),
    mutates=("x",),
)

@op.variant("eager/inplace")
def inplace(x):
    x.mul_(3)

@op.launcher("eager/launched")
def launched(x):
    x.mul_(3)
""",
        timed=True,
        variants=("eager/*",),
    )
    assert {row.word for row in rows} == {"right"}
    assert all(row.timing and row.timing.calls == 1 for row in rows)


def test_constant_data_is_not_timed(judge: Judge) -> None:
    rows = judge(
        """
import assay

op = assay.Op(
    "twice",
    lambda x, one: x.cumsum(0) + one,
    lambda make, n: (make.full(n, value=1.5), make.full(1, value=1.0)),
    cases=assay.grid(n=[1000]),
)
""",
        timed=True,
    )
    assert one(rows, "eager").timing is None
    assert "constant data" in one(rows, "eager").not_timed


def test_a_sleep_of_a_known_length_is_what_the_clock_reads(judge: Judge) -> None:
    rows = judge(
        HEAD
        + """
@op.variant("eager/sleeps")
def sleeps(x):
    time.sleep(0.005)
    return 2 * x
""",
        timed=True,
        budget=0.5,
    )
    timing = one(rows, "eager/sleeps").timing
    assert timing
    assert 0.005 <= timing.median < 0.0075


def test_what_ended_sampling_is_told(judge: Judge) -> None:
    """Noise of 30 % that more samples do not shrink ends with the budget, not with patience.

    In no order that calls between samples could keep step with: turn and turn about they did.
    """
    began = time.monotonic()
    noisy = """
@op.variant("eager/noisy")
def noisy(x, turns=iter(range(10**9))):
    time.sleep(1e-3 if next(turns) * 2654435761 >> 16 & 1 else 2e-3)
    return 2 * x
"""
    (row,) = judge(HEAD + noisy, timed=True, budget=0.3, variants=("eager/noisy",))
    assert row.timing, row.not_timed
    assert row.timing.ended == "budget"
    assert time.monotonic() - began < 60
