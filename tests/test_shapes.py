"""What shapes an Op's kernels take: said by its declaration, kept by its operator, all judged."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ranks
import torch

import assay
from assay.errors import NotSupported, OpError
from assay.inputs import inputs_of
from assay.op import Op
from assay.shapes import misfit
from assay.target import library
from assay.types import Row

X = {"x": "... n", "w": "n"}


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        (X, {"x": (3, 4), "w": (4,)}),
        (X, {"x": (2, 3, 4), "w": (4,)}),
        (X, {"x": (4,), "w": (4,)}),
        ({"a": "...", "b": "..."}, {"a": (), "b": ()}),
        ({"a": "...", "b": "..."}, {"a": (2, 3), "b": (2, 3)}),
        ({"a": "m k", "b": "k n"}, {"a": (2, 3), "b": (3, 5)}),
        ({"x": "m m"}, {"x": (3, 3)}),
        ({"x": "n", "bias": "n"}, {"x": (3,)}),  # not given: None, or a number
    ],
)
def test_what_fits(declared: dict[str, str], given: dict[str, tuple[int, ...]]) -> None:
    assert misfit(declared, given) == ""


@pytest.mark.parametrize(
    ("declared", "given", "said"),
    [
        (X, {"x": (3, 4), "w": (3,)}, r"w has the shape \(3\), meant as \(n\), where n of x is 4"),
        (X, {"x": (3, 4), "w": (1, 4)}, r"w has the shape \(1, 4\), which is not \(n\)"),
        (X, {"x": (), "w": (4,)}, r"x has the shape \(\), which is not \(\.\.\., n\)"),
        ({"a": "...", "b": "..."}, {"a": (2, 3), "b": (3,)}, r"\.\.\. of a is \(2, 3\)"),
        ({"a": "...", "b": "..."}, {"a": (6,), "b": (2, 3)}, r"\.\.\. of a is \(6\)"),
        ({"x": "m m"}, {"x": (3, 4)}, r"where m is 3"),
        ({"x": "n"}, {"x": (2, 3)}, "which is not"),
    ],
)
def test_what_does_not(
    declared: dict[str, str], given: dict[str, tuple[int, ...]], said: str
) -> None:
    assert re.search(said, misfit(declared, given)), misfit(declared, given)


@pytest.mark.parametrize(
    ("shapes", "said"),
    [({"x": "n ..."}, "in front"), ({"x": "2 n"}, "no name"), ({"y": "n"}, "no such input")],
)
def test_a_declaration_that_cannot_work_is_told(shapes: dict[str, str], said: str) -> None:
    with pytest.raises(OpError, match=said):
        Op("made", lambda x: x, lambda make, n: (make.normal(n),), cases=[{"n": 3}], shapes=shapes)


def listed() -> list[Any]:
    """Full: one of each kind; gallery: the others."""
    full = ("layernorm", "vecadd")
    return [
        pytest.param(n, marks=pytest.mark.full if n in full else pytest.mark.gallery)
        for n in ranks.CASES
    ]


def small(op: Op) -> list[Any]:
    """Inputs of a small case that has no size of 1."""
    case = min((one for one in op.cases if one.size >= 16), key=lambda one: one.size)
    return list(inputs_of(op, case, 7))


@pytest.mark.parametrize("name", library())
def test_no_shape_reaches_a_kernel_that_is_not_written_for_it(name: str) -> None:
    """One dimension more is refused, by the declaration or the reference, or it is `...`."""
    served = getattr(assay.ops, name)
    inputs = small(served.op)
    names = served.op.input_names(len(inputs))
    for index, x in enumerate(inputs):
        if not isinstance(x, torch.Tensor) or served.op.shapes.get(names[index], "").startswith(
            "..."
        ):
            continue
        changed = [*inputs[:index], x[None].clone(), *inputs[index + 1 :]]
        with pytest.raises((NotSupported, RuntimeError, IndexError, ValueError)):
            served(*changed)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("vecadd", [(6, 4), (4,)]),
        ("vecadd", [(4,), (1,)]),
        ("scale_bias", [(6, 4), (6, 4), (4,)]),
        ("sigmoid_scale_bias", [(6, 1), (6, 4), (6, 4)]),
        ("cross_entropy", [(6, 5), (4,)]),
        ("layernorm", [(6, 4), (4,), (1,)]),
        ("rmsnorm", [(6, 4), (1,)]),
        ("float_counters", [(6,), (5,)]),
    ],
)
def test_what_eager_would_broadcast_is_refused(name: str, shapes: list[tuple[int, ...]]) -> None:
    inputs = [torch.rand(shape) for shape in shapes]
    if name in ("cross_entropy", "float_counters"):
        places = torch.int64 if name == "cross_entropy" else torch.int32
        inputs[1] = torch.zeros(shapes[1], dtype=places)
    more = (3,) if name == "float_counters" else ()
    with pytest.raises((NotSupported, RuntimeError), match=r"has the shape|[Ee]xpected"):
        getattr(assay.ops, name)(*inputs, *more)


def test_dtypes_that_no_case_mixes_are_refused() -> None:
    x, y = torch.rand(6), torch.rand(6).bfloat16()
    with pytest.raises(NotSupported, match="a is float32 and b bfloat16"):
        assay.ops.vecadd(x, y)


def test_a_gradient_has_the_shapes_of_what_it_saves() -> None:
    from assay.ops.layernorm import layernorm_grad

    assert layernorm_grad.shapes == {"x": "... n", "w": "n"}


@pytest.mark.parametrize("name", listed())
def test_rows_may_lie_in_several_dimensions(judge: Callable[..., list[Row]], name: str) -> None:
    target = f"{Path(ranks.__file__)}:{name}_moved"
    case = {**ranks.CASES[name], "dtype": "float32"}
    rows = judge(target, case=case, variants=("eager", "triton*", "cuda*", "numba*", "python"))
    wrong = [(row.label, row.word, row.reason) for row in rows if row.outcome == "fail"]
    assert not wrong
    assert {"cuda", "triton"} <= {row.way for row in rows if row.word == "right"}


@pytest.mark.parametrize("shape", [(40,), (2, 3, 40), (0, 40), (2, 0, 40)])
@pytest.mark.parametrize("name", ["layernorm", "rmsnorm", "softmax", "log_softmax", "row_sum"])
def test_gradients_come_in_the_shapes_of_their_inputs(name: str, shape: tuple[int, ...]) -> None:
    served = getattr(assay.ops, name)
    weights = {"layernorm": 2, "rmsnorm": 1}.get(name, 0)
    made = [torch.randn(shape), *(torch.randn(40) for _ in range(weights))]
    ours, theirs = ([x.clone().requires_grad_() for x in made] for _ in range(2))
    y, right = served(*ours), served.op.reference(*theirs)
    torch.testing.assert_close(y, right)
    dy = torch.randn_like(right)
    y.backward(dy)
    right.backward(dy)
    for one, other in zip(ours, theirs):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5)
