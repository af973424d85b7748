"""How strong a check is: wrong answers made of the right one, and who may be called too weak."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

import assay
from assay.pipeline import exit_code
from assay.rows import Run, read
from assay.types import Strength
from assay.verdict import strength as measured
from assay.verdict.mutants import IDLE, PLAIN, mutants
from assay.verdict.oracle import Oracle

SEED = 20_260


def strengths(op: assay.Op) -> list[Strength]:
    return measured.strengths(op, list(op.cases), SEED, Oracle(op, "cpu")._truth)


def strength(
    reference: Callable[..., Any], inputs: Callable[..., Any], cases: Any = None, **more: Any
) -> Strength:
    cases = cases if cases is not None else assay.grid(n=[32])
    (one,) = strengths(assay.Op("made", reference, inputs, cases=cases, **more))
    return one


def normal(make: Any, n: int) -> tuple[torch.Tensor, ...]:
    return (make.normal(n),)


def ends_alike(make: Any, n: int) -> tuple[torch.Tensor, ...]:
    x = make.normal(n)
    x[-1] = x[0] + 0.003
    return (x,)


def matrices(make: Any, n: int, dtype: str = "float32") -> tuple[torch.Tensor, ...]:
    return make.normal(n, n, dtype=dtype), make.normal(n, n, dtype=dtype)


def test_a_usual_op_would_notice_every_wrong_answer() -> None:
    one = strength(lambda a, b: a @ b, matrices)
    assert not one.alive
    assert not one.allowed
    assert not one.equivalent
    assert not one.weak
    assert {m.name for m in (*IDLE, *PLAIN)} - set(one.killed) == {"only the first output"}
    for name in (
        "the last quarter of `a` taken for zeros",
        "products in tf32",
        "products in bfloat16",
        "added up in bfloat16",
        "computed in float16",
        "one element slightly off",
    ):
        assert one.killed[name] == "n=32"


def test_each_case_answers_for_what_the_others_cannot() -> None:
    """One element has no tail and no neighbour; the larger case kills what is left."""
    one = strength(lambda x: x * 3, normal, assay.grid(n=[1, 8]))
    assert not one.alive
    assert one.killed["zeros"] == "n=1"
    assert one.killed["shifted by one"] == "n=8"


def test_dtypes_are_sets_of_their_own() -> None:
    def inputs(make: Any, n: int, dtype: str) -> tuple[torch.Tensor, ...]:
        if dtype == "float16":
            return (make.full(n, value=0, dtype=dtype),)
        return (make.normal(n, dtype=dtype),)

    cases = assay.grid(n=[9], dtype=["float32", "float16"])
    one, two = strengths(assay.Op("both", lambda x: x * 2, inputs, cases=cases))
    assert (one.dtype, two.dtype) == ("float32", "float16")
    assert not one.alive
    assert "zeros" in two.alive


WEAK = {
    "zero weights": (
        lambda x, w: x @ w.t(),
        lambda make, n: (make.normal(n, n), make.full(n, n, value=0)),
        "zeros",
        "values drawn from normal() in `w` would tell",
    ),
    "relu of positives": (
        lambda x: torch.relu(x),
        lambda make, n: (make.uniform(n, low=0.1, high=1.0),),
        "a copy of `x`",
        "values drawn from normal() in `x` would tell it apart",
    ),
    "a residual of zeros": (
        lambda x, y: x + y,
        lambda make, n: (make.normal(n), make.full(n, value=0)),
        "a copy of `x`",
        "values drawn from normal() in `y` would tell it apart",
    ),
    "ones": (
        lambda x: x.sum(),
        lambda make, n: (make.full(n, value=1),),
        "one constant",
        "values drawn from normal() in `x` would tell it apart",
    ),
    "a gate that is closed": (
        lambda x, g: torch.where(g, x.exp(), 0.0),
        lambda make, n: (make.normal(n), make.booleans(n, chance=0.0)),
        "zeros",
        "values drawn from booleans() in `g` would tell",
    ),
}


@pytest.mark.parametrize("name", WEAK)
def test_what_computes_nothing_must_be_noticed_and_what_would_is_said(name: str) -> None:
    reference, inputs, mutant, suggestion = WEAK[name]
    one = strength(reference, inputs)
    assert mutant in one.alive
    assert suggestion in one.suggestion
    assert f"{mutant} " in one.weak or f"{mutant}," in one.weak


def test_an_op_that_is_zero_on_any_data_proves_nothing() -> None:
    one = strength(lambda x: x - x, normal)
    assert one.alive == ("zeros",)
    assert "choose inputs on which made gives other answers" in one.suggestion


def test_a_size_is_suggested_where_every_case_is_empty() -> None:
    one = strength(lambda x: x + 1, normal, assay.grid(n=[0]))
    assert one.alive == ("zeros",)
    assert "n=16 would tell it apart" in one.suggestion


def test_a_limit_that_is_larger_than_the_answers_is_to_blame() -> None:
    one = strength(lambda x: x / 100, normal, limit=1.0)
    assert "zeros" in one.alive
    assert "the sign flipped" in one.alive
    assert "a limit smaller than 1 would tell them apart" in one.suggestion


LEGITIMATE = {
    "identity": (lambda x: x.clone(), normal, {}),
    "identity of integers": (lambda x: x.clone(), lambda make, n: (make.integers(n),), {}),
    "transposed": (lambda x: x.t().contiguous(), lambda make, n: (make.normal(n, n),), {}),
    "symmetric": (lambda x: x @ x.t(), lambda make, n: (make.normal(n, n),), {}),
    "a constant": (lambda x: torch.full_like(x, 3), normal, {}),
    "comparison": (lambda x: x > 0, normal, {}),
    "nothing but true": (lambda x: x > -100, normal, {}),
    "index": (lambda x: x.argmax(), normal, {}),
    "integers": (lambda x: x + 1, lambda make, n: (make.integers(n),), {}),
    "bytes": (lambda x: 255 - x, lambda make, n: (make.integers(n, high=256, dtype="uint8"),), {}),
    "one element": (lambda x: x.sum(), normal, {}),
    "one element in": (lambda x: x * 2, lambda make, n: (make.normal(1),), {}),
    "no dimension": (lambda x: x * 2, lambda make, n: (make.normal(()),), {}),
    "tiny allowance": (lambda x: x * 1e-30, normal, {}),
    "tiny values": (lambda x: torch.softmax(x, -1), lambda make, n: (make.normal(2, 5000),), {}),
    "one of a softmax": (lambda x: torch.softmax(x, -1), lambda make, n: (make.normal(n, 1),), {}),
    "float16": (lambda x: x.exp(), lambda make, n: (make.normal(n, dtype="float16"),), {}),
    "bfloat16": (lambda x: x.exp(), lambda make, n: (make.normal(n, dtype="bfloat16"),), {}),
    "a long float32 sum": (lambda x: x.sum(-1), lambda make, n: (make.normal(3, 1 << 18),), {}),
    "complex": (
        lambda z: z * 1j,
        lambda make, n: (torch.complex(make.normal(n), make.normal(n)),),
        {},
    ),
    "scattered NaN": (
        lambda x: torch.where(x > 1, torch.nan, x * 2),
        lambda make, n: (make.normal(n),),
        {},
    ),
    "infinities": (lambda x: 1 / torch.relu(x), normal, {}),
    "two outputs": (lambda x: (x * 2, x.sum()), normal, {}),
    "in place": (lambda x: x + 1, normal, {"mutates": ("x",)}),
    "accepted": (
        lambda x: x.flip(0),
        normal,
        {
            "accept": lambda outs, ins: bool(
                torch.equal(outs[0].sort().values, ins[0].sort().values)
            )
        },
    ),
    "accept that fails": (
        lambda x: x.argsort(),
        normal,
        {
            "accept": lambda outs, ins: bool(
                (ins[0][outs[0].long()].diff() >= 0).all()
                and outs[0].unique().numel() == len(ins[0])
            )
        },
    ),
    "coarse limit": (lambda x: x * 2, normal, {"limit": 0.01}),
    "ends alike by chance": (lambda x: x * 2, ends_alike, {"limit": 0.01}),
    "exact limit": (lambda x: x.clone(), normal, {"limit": 0.0}),
    "random": (lambda x: torch.dropout(x, 0.5, True), normal, {}),
    "relu": (torch.relu, normal, {}),
    "gather": (
        lambda x, i: x[i],
        lambda make, n: (make.normal(n, 4), make.integers(7, high=32)),
        {},
    ),
    "cumulated": (lambda x: x.cumsum(-1), lambda make, n: (make.normal(n, n),), {}),
    "normalised": (
        lambda x, w, b: torch.nn.functional.layer_norm(x, x.shape[-1:], w, b),
        lambda make, n: (make.normal(n, 64), make.full(64, value=1), make.full(64, value=0)),
        {},
    ),
    "a convolution": (
        lambda x, w: torch.conv2d(x, w, padding=1),
        lambda make, n: (make.normal(2, 3, 8, 8), make.normal(3, 3, 3, 3)),
        {},
    ),
    "a mean in bfloat16": (
        lambda x: x.mean(-1),
        lambda make, n: (make.normal(n, 256, dtype="bfloat16"),),
        {},
    ),
}


@pytest.mark.parametrize("name", LEGITIMATE)
def test_no_legitimate_op_is_called_too_weak(name: str) -> None:
    reference, inputs, more = LEGITIMATE[name]
    one = strength(reference, inputs, **more)
    assert not one.alive, one
    assert "zeros" in one.killed


def test_what_is_right_is_not_counted_as_a_wrong_answer() -> None:
    same = strength(lambda x: x.clone(), normal).equivalent
    assert "a copy of `x`" in same
    square = strength(lambda x: x @ x.t(), lambda make, n: (make.normal(n, n),)).equivalent
    assert "transposed" in square
    accepted = LEGITIMATE["accepted"]
    assert "shifted by one" in strength(accepted[0], accepted[1], **accepted[2]).equivalent
    small = strength(lambda x: x * 2, normal, limit=0.01)
    assert "all slightly too large" in small.allowed


def test_too_weak_is_said_once_in_every_row_and_kept_in_the_run(judge, tmp_path) -> None:
    target = (
        "import torch, assay\n"
        "def inputs(make, n, dtype):\n"
        "    w = make.full(n, n, value=0, dtype=dtype)\n"
        "    return make.normal(n, n, dtype=dtype), w if dtype == 'float32' else w + 1\n"
        "op = assay.Op('linear', lambda x, w: x @ w.t(), inputs,\n"
        "    cases=assay.grid(n=[8], dtype=['float32', 'float64']))\n"
        "@op.variant('eager/zeros')\ndef zeros(x, w):\n    return torch.zeros_like(x)\n"
        "@op.variant('eager/same')\ndef same(x, w):\n    return (w @ x.t()).t().contiguous()\n"
    )
    rows = judge(target)
    words = {(row.variant, row.case.values["dtype"]): row.word for row in rows}
    assert words == {
        ("eager", "float32"): "check too weak",
        ("eager/same", "float32"): "check too weak",
        ("eager/zeros", "float32"): "check too weak",
        ("eager", "float64"): "right",
        ("eager/same", "float64"): "right",
        ("eager/zeros", "float64"): "wrong value",
    }
    weak = [row for row in rows if row.word == "check too weak"]
    assert all("zeros" in row.reason and "normal() in `w`" in row.reason for row in weak)
    assert exit_code(weak) == 3
    run, one = Run(tmp_path), Strength(op="a", killed={"zeros": "n=1"}, alive=("one NaN",))
    run.write(one)
    assert list(read(run.path)) == [one]


def test_it_costs_a_fraction_of_the_reference() -> None:
    """On the library's softmax: no large case is looked at for what small ones settle."""
    from assay.target import load_op, parse

    op = load_op(parse("softmax"), "softmax")
    oracle, asked = Oracle(op, "cpu"), []

    def truth(case: Any, seed: int) -> Any:
        asked.append(case)
        return oracle._truth(case, seed)

    start = time.process_time()
    found = measured.strengths(op, list(op.cases), SEED, truth)
    spent = time.process_time() - start
    assert all(not one.alive for one in found)
    largest = max(measured.size_of(case) for case in op.cases)
    assert all(measured.size_of(case) < largest for case in asked)
    assert spent < 5, spent


def test_names_are_distinct_and_enough() -> None:
    op = assay.Op("two", lambda a, b: a + b, matrices, cases=assay.grid(n=[4]))
    names = [m.name for m in mutants(op, ["a", "b"])]
    assert len(names) == len(set(names))
    assert len(names) >= 20


@pytest.mark.gpu
def test_truth_on_a_gpu_tells_the_same() -> None:
    cases = assay.grid(n=[64], dtype=["float32", "bfloat16"])
    op = assay.Op("product", lambda a, b: a @ b, matrices, cases=cases)
    there = measured.strengths(op, list(op.cases), SEED, Oracle(op, "cuda:0")._truth)
    for mine, one in zip(strengths(op), there):
        assert set(one.killed) == set(mine.killed)
        assert not one.alive
