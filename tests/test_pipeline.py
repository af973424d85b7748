"""The one loop: which cases and variants, which outcome, which exit code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from assay.errors import AssayError
from assay.pipeline import exit_code
from assay.request import workers_for
from assay.types import OUTCOMES, Row

Judge = Callable[..., list[Row]]

OP = """
import torch
import assay

op = assay.Op(
    "twice",
    lambda x: 2 * x,
    lambda make, n, dtype: (make.normal(n, dtype=dtype),),
    cases=assay.grid(n=[1, 1000], dtype=["float32", "float64"]),
)

@op.variant("eager/sum")
def added(x):
    return x + x

@op.variant("library/none")
def library(x):
    return 2 * x
"""


def row(word: str, way: str = "eager") -> Row:
    return Row(op="o", variant=way, way=way, outcome=OUTCOMES[word], word=word)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["right"], 0),
        (["right", "refused", "not run"], 0),
        (["right", "wrong value"], 1),
        (["not supported"], 1),
        (["not run"], 3),
        ([], 3),
        (["check too weak"], 3),
        (["right", "check too weak"], 3),
        (["check too weak", "crashed"], 1),
    ],
)
def test_exit_codes(words: list[str], code: int) -> None:
    assert exit_code([row(word) for word in words]) == code


def test_a_required_way_that_did_not_run_is_a_failure() -> None:
    rows = [row("right"), row("not run", "cuda")]
    assert exit_code(rows) == 0
    assert exit_code(rows, ("eager",)) == 0
    assert exit_code(rows, ("cuda",)) == 1
    assert exit_code(rows, ("triton",)) == 1


def test_cases_and_variants_are_chosen(judge: Judge) -> None:
    rows = judge(OP, case={"n": 1000}, dtypes=("float64",), variants=("eager", "eager/s*"))
    assert {r.variant for r in rows} == {"eager", "eager/sum"}
    assert {r.case.label for r in rows} == {"n=1000 dtype=float64"}


def test_a_case_of_ones_own_needs_every_value(judge: Judge) -> None:
    rows = judge(OP, case={"n": 77, "dtype": "float32"}, variants=("eager",))
    assert [r.case.label for r in rows] == ["n=77 dtype=float32"]
    with pytest.raises(AssayError, match=r"give every value for a new one"):
        judge(OP, case={"n": 77}, variants=("eager",))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"variants": ("tritn",)}, "no variant is called tritn; there are eager"),
        ({"case": {"m": 1}}, "no case has 'm'; the values are n, dtype"),
        ({"device": "cuda"}, "--device cuda"),
        ({"device": "gpu"}, "say cpu, cuda or cuda:1"),
    ],
)
def test_wrong_choices_say_what_there_is(judge: Judge, options: dict[str, Any], text: str) -> None:
    with pytest.raises(AssayError, match=text):
        judge(OP, **options)


def test_what_cannot_run_here_says_why_in_every_case(judge: Judge) -> None:
    rows = judge(OP, variants=("library/none",))
    assert len(rows) == 4
    assert {(r.outcome, r.word) for r in rows} == {("absent", "not run")}
    assert all("no GPU" in r.reason for r in rows)


def test_every_row_says_where_when_and_what_it_cost(judge: Judge) -> None:
    for made in judge(OP, case={"n": 1000}, dtypes=("float32",), variants=("eager*",)):
        assert made.bytes == 8000
        assert made.machine
        assert made.device == "cpu"
        assert made.time.endswith("+00:00")
        assert len(made.source_hash) == 16
        assert made.verdict
        assert made.verdict.seed is not None


def test_the_same_seed_gives_the_same_verdict(judge: Judge) -> None:
    first = judge(OP, variants=("eager/sum",), seed=5)
    second = judge(OP, variants=("eager/sum",), seed=5)
    assert [r.verdict for r in first] == [r.verdict for r in second]


def test_hostile_inputs_are_asked_of_chosen_variants_alone(judge: Judge) -> None:
    """And declared cases can be left out: two requests then make the rows of one."""
    options: dict[str, Any] = {"zoo": True, "variants": ("eager*",), "dtypes": ("float32",)}
    first = judge(OP, zoo_of=("eager/*",), **options)
    rest = judge(OP, zoo_of=("eager",), declared=False, **options)
    assert {r.label for r in first if not r.case.zoo} == {"eager", "eager/sum"}
    assert all(r.case.zoo for r in rest)
    of_sum = {r.case.label for r in first if r.case.zoo and r.variant == "eager/sum"}
    of_eager = {r.case.label for r in rest if r.word == "right"}
    assert {r.label for r in first if r.case.zoo and r.word == "right"} == {"eager/sum"}
    assert of_sum < of_eager, "without the layouts that contiguous copies remove"


def test_a_new_case_may_be_asked_in_several_dtypes(judge: Judge) -> None:
    rows = judge(OP, case={"n": 7}, dtypes=("float32", "bfloat16"), variants=("eager",))
    assert [r.case.label for r in rows] == ["n=7 dtype=float32", "n=7 dtype=bfloat16"]
    with pytest.raises(AssayError, match="no case has n=7; give every value"):
        judge(OP, case={"n": 7}, variants=("eager",))


def test_fresh_processes_give_a_row_each(judge: Judge) -> None:
    rows = judge(
        OP,
        case={"n": 1000},
        dtypes=("float32",),
        variants=("eager", "eager/sum"),
        timed=True,
        budget=0.05,
        processes=2,
    )
    found = [(row.variant, row.timing.schedule) for row in rows if row.timing]
    assert len(found) == 4
    schedules = list(dict.fromkeys(schedule for _, schedule in found))
    assert len(schedules) == 2
    assert {s for v, s in found if v == "eager"} == set(schedules), "all kernels in each process"


def test_operators_beside_one_another_share_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.request.cores", lambda: 16)
    assert workers_for("cuda:0", 1) == workers_for("cpu", 1) == 4
    assert workers_for("cuda:0", 12) == 2
    monkeypatch.setattr("assay.request.cores", lambda: 2)
    assert [workers_for("cuda:0", n) for n in (1, 12)] == [1, 1]
    assert [workers_for("cpu", n) for n in (1, 12)] == [2, 1]
