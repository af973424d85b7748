"""What differs behind a busy stream is unfinished if it is wrong there, and else no fault."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

import assay
from assay.inputs import inputs_of
from assay.types import Case, Verdict
from assay.verdict.buffers import POISONS
from assay.verdict.late import NOT_WAITING
from assay.verdict.oracle import Oracle
from assay.verdict.protocol import Ran
from assay.verdict.run import Runner
from assay.verdict.shipped import ship

CASE = Case({"n": 1000}, 0, "")
total = assay.Op(
    "total", lambda x: x.sum(), lambda make, n: (make.normal(n, mean=0.25),), cases=[{"n": 1000}]
)
random = assay.Op(
    "drawn",
    lambda x: torch.rand_like(x),
    lambda make, n: (make.normal(n),),
    cases=[{"n": 1000}],
    accept=lambda outputs, inputs: bool((outputs[0] >= 0).all()),
)


def ran(op: assay.Op, place: Path, seed: int, made: torch.Tensor, **more: bool) -> Ran:
    """A run on the inputs of a seed that gave this."""
    place.mkdir()
    (x,) = inputs_of(op, CASE, seed)
    given = ship(x, place / "input0", set())
    return Ran(
        seed=seed,
        poison=POISONS[seed % 2],
        outputs=(ship(made, place / "output0", set()),),
        inputs=((0, given),),
        **more,
    )


def judged(op: assay.Op, place: Path, made: list[torch.Tensor], unlike_idle: bool) -> Verdict:
    """What the oracle says of three runs, of which the last had a busy stream."""
    runs = [ran(op, place / "0", 5, made[0]), ran(op, place / "1", 6, made[1])]
    runs.append(ran(op, place / "2", 5, made[2], unlike_idle=unlike_idle))
    return Oracle(op, "cpu").judge(CASE, runs, "", "cpu")


def sums() -> list[torch.Tensor]:
    return [inputs_of(total, CASE, seed)[0].sum() for seed in (5, 6, 5)]


def test_another_order_of_a_sum_behind_a_busy_stream_is_right(tmp_path: Path) -> None:
    """As atomics add: the idle GPU happened to give the same bits again and again."""
    one, two, again = sums()
    found = judged(total, tmp_path, [one, two, again * (1 + 2**-22)], unlike_idle=True)
    assert found.word == "right"
    assert any("within the limit" in finding for finding in found.findings)


@pytest.mark.parametrize(
    ("unlike_idle", "word"), [(True, "unfinished"), (False, "not the same twice")]
)
def test_what_is_wrong_there_is_unfinished(tmp_path: Path, unlike_idle: bool, word: str) -> None:
    one, two, again = sums()
    found = judged(total, tmp_path, [one, two, again * 1.5], unlike_idle)
    assert found.word == word
    assert (found.detail == NOT_WAITING) is unlike_idle


def test_an_op_with_its_own_word_for_right_has_it_for_the_busy_run_too(tmp_path: Path) -> None:
    good, bad = torch.rand(1000), torch.full((1000,), -1.0)
    for name in "ab":
        (tmp_path / name).mkdir()
    right = judged(random, tmp_path / "a", [good, good + 1, good + 2], unlike_idle=True)
    assert right.word == "right"
    wrong = judged(random, tmp_path / "b", [good, good + 1, bad], unlike_idle=True)
    assert wrong.word == "unfinished"


FAR, NEAR = 2**-21, 2**-22


@pytest.mark.parametrize(
    ("poisoned", "in_place", "late"),
    [
        ([FAR] * 7, [0] * 5, True),
        ([FAR] * 7, [NEAR, 0, 0, 0, 0], False),
        ([FAR] * 7, [0, 0, 0, 0, NEAR], False),
        ([FAR, FAR, 0], [0] * 5, False),
    ],
    ids=[
        "minds poison alone",
        "another order behind any busy stream",
        "now and then",
        "with poison by chance",
    ],
)
def test_who_minds_poison_alone_does_not_wait_whatever_it_gives(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    poisoned: list[float],
    in_place: list[float],
    late: bool,
) -> None:
    """A stale maximum changes a softmax by its rounding alone: right, and for another reason."""
    count, off = itertools.count(), {False: iter(poisoned), True: iter(in_place)}

    def run(self: Runner, folder: Path, seed: int, poison: int, **how: bool) -> Ran:
        moved = next(off[how.get("in_place", False)]) if how.get("again") else 0
        return ran(total, tmp_path / str(next(count)), seed, sums()[0] * (1.0 + moved))

    monkeypatch.setattr(Runner, "run", run)
    monkeypatch.setattr(Runner, "_on_gpu", property(lambda self: True))
    none: Any = None
    runner = Runner(none, total, none, CASE, none, None, none, tmp_path)
    first, last = (run(runner, tmp_path, 5, POISONS[1], again=again) for again in (False, True))
    found = runner._again(first, last)
    assert (found.late == NOT_WAITING) is late
    assert found.unlike_idle is not late
