"""`assay.ops`: every operator of the library as a function that a model calls."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
import torch

import assay
from assay.inputs import inputs_of
from assay.operators import picking
from assay.target import library, load_op, parse


def smallest(name: str, least: int = 1, dtype: str = "float32") -> tuple[Any, tuple[Any, ...]]:
    """An operator, and the inputs of its smallest case of at least so many elements."""
    served = getattr(assay.ops, name)
    floats = [c for c in served.op.cases if c.values.get("dtype", dtype) == dtype]
    large = [c for c in floats or served.op.cases if c.size >= least]
    case = min(large, key=lambda one: one.size)
    return served, inputs_of(served.op, case, 7)


def of_two_bytes(*dtypes: str) -> list[tuple[str, str]]:
    """Operators with one of those of their dtypes."""
    pairs = itertools.product(library(), dtypes)
    cases = {name: [c.values for c in load_op(parse(name), name).cases] for name in library()}
    return [(name, d) for name, d in pairs if any(v.get("dtype") == d for v in cases[name])]


@pytest.mark.parametrize("name", library())
def test_it_is_what_eager_says_and_tells_what_runs(name: str) -> None:
    served, inputs = smallest(name)
    copied = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
    made, right = served(*inputs), served.op.reference(*copied)
    made, right = (list(y) if isinstance(y, tuple) else [y] for y in (made, right))
    for one, other in zip(made, right, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
    assert served.serves(*inputs) == "eager, named"


@pytest.mark.parametrize("name", library())
def test_a_gpu_that_nobody_tuned_on_gets_a_kernel_that_takes_every_case(name: str) -> None:
    served = getattr(assay.ops, name)
    variant, _ = picking.usual(served.op, "cuda")
    assert variant.way in ("cuda", "triton")
    if served.gradient is not None:
        variant, _ = picking.usual(served.gradient.op, "cuda")
        assert variant.when is None


@pytest.mark.parametrize(
    ("name", "fits", "runs", "beyond"),
    [
        ("histogram", {"bins": 256}, "cuda/privatised", {"bins": 1 << 20}),
        ("counters", {"slots": 64}, "cuda/privatised", {"slots": 1 << 20}),
        ("float_counters", {"slots": 64}, "cuda/privatised", {"slots": 1 << 20}),
        ("maxpool2d", {"k": 2}, "cuda/vectorised", {"k": 7}),
        ("avgpool2d", {"k": 3}, "cuda/vectorised", {"k": 7}),
        ("lrn", {"size": 5}, "cuda/walked", {"size": 99}),
    ],
)
def test_scalars_of_a_call_say_which_kernel_is_the_usual_one(
    name: str, fits: dict[str, int], runs: str, beyond: dict[str, int]
) -> None:
    op = getattr(assay.ops, name).op
    assert picking.usual(op, "cuda", fits)[0].name == runs
    assert picking.usual(op, "cuda", beyond)[0].when is None
    assert picking.usual(op, "cuda")[0].when is None, "of no call in particular"


@pytest.mark.parametrize(
    ("dtype", "runs"),
    [("bfloat16", "cuda/tensor"), ("float16", "cuda/tensor"), ("float32", "cuda/tiled")],
)
def test_the_dtype_of_a_call_says_which_kernel_is_the_usual_one(dtype: str, runs: str) -> None:
    kind = getattr(torch, dtype)
    p, q, dy = (torch.empty(2, *shape, dtype=kind) for shape in ((3, 4), (4, 5), (3, 5)))
    for op, inputs in ((assay.ops.bmm.op, (p, q)), (assay.ops.bmm.gradient.op, (dy, p, q))):
        picker = picking.Picker(op, picking.TUNED, "eager")
        picker._kept["cuda:0"] = ()
        there = torch.device("cuda:0")
        assert picker.pick(inputs, there)[0].name == runs
        assert "the usual one" in picker.why(inputs, there)


def test_what_runs_where_nothing_is_tuned_adds_in_one_order() -> None:
    for dtype in ("float32", "float64", "bfloat16"):
        chosen = picking.usual(assay.ops.sum.op, "cuda", {"dtype": dtype})[0]
        assert chosen.name == "cuda/two_stages"


def test_a_dtype_that_decides_is_asked_of_cases_that_can_be_made() -> None:
    """And of no others: a call must not fail for a case that needs a file that is gone."""

    def inputs(make: Any, n: int, dtype: str) -> tuple[torch.Tensor, ...]:
        if dtype == "float16":
            raise FileNotFoundError("gone")
        return make.integers(n, low=0, high=2, dtype="int32"), make.normal(n, dtype=dtype)

    def made(dtypes: tuple[str, ...]) -> assay.Op:
        cases = [{"n": 4, "dtype": dtype} for dtype in dtypes]
        op: assay.Op = assay.Op("twice", lambda at, x: 2 * x, inputs, cases=cases)
        op.launcher("triton/plain")(lambda y, at, x: None)
        op.launcher("triton/short", when=lambda dtype: dtype == "bfloat16")(lambda y, at, x: None)
        return op

    given = torch.zeros(4, dtype=torch.int32), torch.zeros(4, dtype=torch.bfloat16)
    there = torch.device("cuda:0")
    for dtypes, runs in (
        (("float32", "bfloat16"), "triton/short"),
        (("int32", "bfloat16"), "triton/short"),  # of int32 both inputs have it; x has it always
        (("float32", "float16", "bfloat16"), "triton/plain"),
    ):
        picker = picking.Picker(made(dtypes), picking.TUNED, "")
        picker._kept = {"cuda:0": (), "cpu": ()}
        assert picker.pick(given, there)[0].name == runs
        assert picker.pick(given, torch.device("cpu"))[0].name == "eager"


def test_shapes_say_nothing_of_what_is_usual() -> None:
    """Kernels of long rows are for those who tuned: they can't tell from scalars."""
    assert picking.usual(assay.ops.softmax.op, "cuda", {})[0].name == "cuda/held"
    assert picking.usual(assay.ops.lcn.op, "cuda", {"size": 5})[0].name == "cuda/two_passes"


@pytest.mark.full
@pytest.mark.parametrize("name", library())
def test_it_keeps_the_contract_of_operators(name: str) -> None:
    served, inputs = smallest(name, least=64)
    keeps_the_contract(served, inputs)


@pytest.mark.full
@pytest.mark.parametrize(("name", "dtype"), of_two_bytes("bfloat16"))
def test_it_keeps_the_contract_in_two_bytes_an_element(name: str, dtype: str) -> None:
    served, inputs = smallest(name, 64, dtype)
    keeps_the_contract(served, inputs)


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, "float32") for name in library()), *of_two_bytes("bfloat16", "float16")],
)
def test_on_a_gpu_its_kernels_keep_the_contract(name: str, dtype: str) -> None:
    served, inputs = smallest(name, 64, dtype)
    moved = [x.cuda() if isinstance(x, torch.Tensor) else x for x in inputs]
    assert served.serves(*moved).startswith(("cuda", "triton"))
    keeps_the_contract(served, moved)


def keeps_the_contract(served: Any, inputs: Sequence[Any]) -> None:
    rows = assay.check_operator(served, *inputs, reference=served.op.reference)
    assert [(r.variant, r.word, r.reason) for r in rows if r.outcome == "fail"] == []
    assert any(row.word == "right" for row in rows)
