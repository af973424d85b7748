"""The operators of the library in the ways that build quickly; test_gpu.py has them all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from assay.types import Row

Judge = Callable[..., list[Row]]
QUICK = ("eager", "python", "triton*", "cuda*", "numba*", "cpp*")


@pytest.mark.full
@pytest.mark.parametrize(
    ("op", "case"),
    [
        ("square", {"m": 37, "n": 27, "dtype": "float32"}),
        pytest.param("softmax", {"rows": 2, "n": 5003, "dtype": "float32"}, marks=pytest.mark.full),
    ],
)
def test_every_way_is_judged_or_says_why_not(
    judge: Judge, op: str, case: dict[str, object]
) -> None:
    rows = judge(op, case=case, variants=QUICK)
    judges = {row.way: row.verdict.judge for row in rows if row.verdict}
    assert judges == {
        "eager": "cpu",
        "python": "cpu",
        "cpp": "cpu",
        "triton": "sm_80",
        "numba": "sm_80",
        "cuda": "sm_90",
    }
    assert {row.word for row in rows} == {"right"}
    compiled = [row for row in rows if row.way == "cuda"]
    assert compiled
    for row in compiled:
        assert row.counters
        for kernel in row.counters.kernels:
            assert kernel.arch == "sm_90"
            assert kernel.registers
            assert kernel.spill_load_bytes == kernel.spill_store_bytes == 0


@pytest.mark.full
def test_bfloat16_is_judged_where_it_can_be(judge: Judge) -> None:
    case = {"rows": 5, "n": 1025, "dtype": "bfloat16"}
    rows = judge("softmax", case=case, variants=QUICK)
    words = {row.way: (row.word, row.reason) for row in rows}
    assert words["cpp"][0] == words["eager"][0] == "right"
    assert words["triton"][0] == words["cuda"][0] == "right"
    assert "bfloat16" in words["numba"][1]
    assert "bfloat16" in words["python"][1]
