"""Cheats that need a GPU: other streams, and timers that are replaced in timed calls."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from assay.types import Row

pytestmark = [pytest.mark.gpu, pytest.mark.alone, pytest.mark.timeout(300)]

Judge = Callable[..., list[Row]]

HEAD = """
import torch
import assay

def reference(x):
    return sum((k * x).sin() for k in range(1, 20))

op = assay.Op(
    "streams",
    reference,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[1 << 20]),
)
kept = {}

def side():
    return kept.setdefault("side", torch.cuda.Stream())
"""


def only(rows: list[Row], variant: str) -> Row:
    (row,) = [row for row in rows if row.variant == variant]
    return row


def judged(judge: Judge, code: str, **options: object) -> list[Row]:
    return judge(HEAD + code, device="cuda:0", variants=("eager*",), **options)


def test_work_on_a_stream_that_nobody_waits_for_is_unfinished(judge: Judge) -> None:
    rows = judged(
        judge,
        """
@op.variant("eager/waits_both_ways")
def waits_both_ways(x):
    here = torch.cuda.current_stream()
    side().wait_stream(here)
    with torch.cuda.stream(side()):
        y = reference(x)
    here.wait_stream(side())
    return y

@op.variant("eager/not_awaited")
def not_awaited(x):
    y = torch.empty_like(x)
    side().wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side()):
        torch.cuda._sleep(20_000_000)
        y.copy_(reference(x))
    return y

@op.variant("eager/does_not_wait")
def does_not_wait(x):
    with torch.cuda.stream(side()):
        y = reference(x)
    torch.cuda.current_stream().wait_stream(side())
    return y

@op.launcher("eager/on_the_default_stream")
def on_the_default_stream(y, x):
    with torch.cuda.stream(torch.cuda.default_stream()):
        y.copy_(reference(x))
""",
    )
    assert only(rows, "eager").word == "right"
    assert only(rows, "eager/waits_both_ways").word == "right"
    for variant in ("not_awaited", "does_not_wait", "on_the_default_stream"):
        row = only(rows, f"eager/{variant}")
        assert row.word == "unfinished", (variant, row.word, row.reason)
    assert "still being written" in only(rows, "eager/not_awaited").reason
    assert "caller's stream" in only(rows, "eager/does_not_wait").reason


def test_timers_and_kept_answers_are_named_on_a_gpu(judge: Judge) -> None:
    rows = judged(
        judge,
        """
import sys

def called_from(name):
    frame = sys._getframe()
    while frame and not frame.f_code.co_filename.endswith(name):
        frame = frame.f_back
    return frame is not None

in_timing = called_from("clock/timing.py")

@op.variant("eager/elapsed_time")
def elapsed_time(x):
    if in_timing:
        torch.cuda.Event.elapsed_time = lambda start, end: 1e-3
    return reference(x)

@op.variant("eager/by_address")
def by_address(x):
    key = x.data_ptr() if in_timing else len(kept)
    if key not in kept:
        kept[key] = reference(x)
    return kept[key].clone()

@op.variant("eager/honest")
def honest(x):
    return reference(x)
""",
        timed=True,
    )
    row = only(rows, "eager/elapsed_time")
    assert (row.word, row.reason) == ("tampered", "torch.cuda.Event.elapsed_time")
    row = only(rows, "eager/by_address")
    assert row.outcome == "fail"
    assert "in the timed calls" in row.reason
    assert row.timing is None
    for variant in ("eager", "eager/honest"):
        assert only(rows, variant).timing, only(rows, variant)


@pytest.mark.parametrize("op", ["softmax", "square"])
def test_every_way_of_the_library_is_right_on_a_busy_side_stream(judge: Judge, op: str) -> None:
    rows = judge(op, device="cuda:0")
    accused = [f"{r.label} {r.case.label}: {r.word}: {r.reason}" for r in rows if r.word != "right"]
    assert not [text for text in accused if ": not run" not in text], "\n".join(accused)
