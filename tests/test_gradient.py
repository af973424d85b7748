"""Op.gradient: what it is given, what it refuses, and that its formula is the gradient."""

from __future__ import annotations

import pytest
import torch

import assay
from assay.errors import OpError
from assay.inputs import inputs_of
from assay.ops.softmax import softmax, softmax_grad
from assay.ops.square import square, square_grad, square_grad_grad
from assay.target import parse
from assay.types import Case
from assay.verdict.joined import check_formula


def rows(make, m, n, dtype="float32"):
    return (make.normal(m, n, dtype=dtype),)


def an_op(reference, inputs=rows, **more):
    given = {"cases": assay.grid(m=[3], n=[5]), **more}
    return assay.Op("thing", reference, inputs, **given)


def test_its_inputs_are_gradients_then_saved_values_as_rounded():
    case = Case({"rows": 3, "n": 7, "dtype": "bfloat16"})
    dy, y = inputs_of(softmax_grad, case, 5)
    (x,) = inputs_of(softmax, case, 5)
    assert torch.equal(y, torch.softmax(x, -1))  # of the forward's own inputs, in bfloat16
    assert dy.dtype == y.dtype == torch.bfloat16
    assert dy.shape == y.shape
    assert dy.std() > 0.5
    again = inputs_of(softmax_grad, case, 5)
    assert torch.equal(again[0], dy)
    assert not torch.equal(inputs_of(softmax_grad, case, 6)[0], dy)


def test_its_cases_are_the_forwards_in_floating_point():
    dtypes = {case.values["dtype"] for case in square_grad.cases}
    assert dtypes == {"float64", "float32", "float16", "bfloat16"}  # square has int32 too
    assert len(square_grad.cases) == len(square.cases) - 1
    assert square.gradients == [square_grad]
    assert square_grad.gradients == [square_grad_grad]


@pytest.mark.parametrize("op", [softmax_grad, square_grad, square_grad_grad])
def test_the_librarys_formulas_are_gradients(op):
    for case in op.cases[:4]:
        check_formula(op, case, 3)


def test_several_outputs_are_told_apart_by_number():
    op = an_op(lambda x: (x.max(-1).values, x.max(-1).indices))

    def formula(dy, x, at):
        return torch.zeros_like(x).scatter(-1, at[:, None], dy[:, None])

    grad = op.gradient(formula, saves=("x", "output1"), wrt="x")
    dy, x, at = inputs_of(grad, grad.cases[0], 1)  # one gradient: indices have none
    assert at.dtype == torch.int64
    assert dy.shape == (3,)
    assert torch.equal(at, x.max(-1).indices)
    check_formula(grad, grad.cases[0], 1)
    vague = op.gradient(formula, saves=("x", "at"), wrt="x")
    with pytest.raises(OpError, match="saves 'at', and there are 2 outputs; say which: output0 to"):
        inputs_of(vague, vague.cases[0], 1)


@pytest.mark.parametrize(
    ("formula", "saves", "said"),
    [
        (lambda dy, x: dy * (2 * x), "x", "wrong gradient of x: the formula gives"),
        (lambda dy, x: dy * (2 * x + 1) * (1 + 1e-8), "x", "wrong gradient of x: the formula"),
        (lambda dy, x: (dy * (2 * x + 1)).sum(0), "x", r"shape \(5,\), and x has \(3, 5\)"),
        (lambda dy, x: (dy, dy), "x", "returns 2 gradients, and wrt names 1: x"),
        (lambda dy, y: dy * y, "y", "float64 autograd of thing's reference"),
    ],
)
def test_a_formula_that_is_not_the_gradient_is_the_users_mistake(formula, saves, said):
    op = an_op(lambda x: x * x + x)
    grad = op.gradient(formula, saves=saves, wrt="x")
    with pytest.raises(OpError, match=said):
        check_formula(grad, grad.cases[0], 1)
    right = op.gradient(lambda dy, x: dy * (2 * x + 1), saves="x", wrt="x", name="right")
    check_formula(right, right.cases[0], 1)


def test_a_wrong_formula_ends_the_check_with_its_place(judge):
    with pytest.raises(assay.AssayError, match=r"wrong gradient of x: .* at \[\d+, \d+\], and"):
        judge(
            "import assay\n"
            "op = assay.Op('cube', lambda x: x**3, lambda make, n: (make.normal(n, n),),\n"
            "              cases=assay.grid(n=[4]))\n"
            "cube_grad = op.gradient(lambda dy, x: 2 * x * dy, saves='x', wrt='x')\n"
        )


def test_a_forward_that_autograd_cannot_follow_is_named():
    op = an_op(lambda x: x.detach() * 2)
    grad = op.gradient(lambda dy: 2 * dy, wrt="x")
    with pytest.raises(OpError, match="finds no path through the forward's reference"):
        check_formula(grad, grad.cases[0], 1)


def test_what_is_declared_wrongly_is_refused():
    op = an_op(lambda x: x.exp())
    with pytest.raises(OpError, match="thing_grad: wrt names 'z'; thing takes x"):
        op.gradient(lambda dy: dy, wrt="z")
    with pytest.raises(OpError, match="wrt names no input"):
        op.gradient(lambda dy: dy, wrt=())
    with pytest.raises(OpError, match="it is given the output gradients, then x"):
        op.gradient(lambda x: x, saves="x", wrt="x")
    with pytest.raises(OpError, match="declares 'speed'; known are flops"):
        op.gradient(lambda dy: dy, wrt="x", speed=1)
    bad = op.gradient(lambda dy, dz: dy, wrt="x")
    with pytest.raises(OpError, match="1 floating-point outputs"):
        inputs_of(bad, bad.cases[0], 0)
    whole = an_op(lambda x: x + 1, cases=assay.grid(m=[1], n=[2], dtype=["int32"]))
    with pytest.raises(OpError, match="none of its cases is in floating point"):
        whole.gradient(lambda dy: dy, wrt="x")
    placed = an_op(lambda x: x.exp(), mutates="x")
    with pytest.raises(OpError, match="changes in place; save 'output0'"):
        placed.gradient(lambda dy, x: dy * x, saves="x", wrt="x")


def test_hostile_values_do_not_tear_saved_values_apart():
    # y is softmax of x: a NaN put into y alone is none that the forward could have saved.
    assert {"y:nan", "y:huge", "y:expanded"} <= set(softmax_grad.excludes)
    assert not any(kind.startswith("dy:") for kind in softmax_grad.excludes)
    assert square_grad.excludes == ()  # it saves the input itself, which may be anything


def test_a_librarys_gradient_is_a_target():
    target = parse("softmax_grad")
    assert (target.module, target.name) == ("assay.ops.softmax", "softmax_grad")


@pytest.mark.full
@pytest.mark.parametrize(
    ("op", "case"),
    [
        ("softmax_grad", {"rows": 5, "n": 1025, "dtype": "bfloat16"}),
        ("square_grad", {"m": 37, "n": 27, "dtype": "float16"}),
    ],
)
def test_its_variants_are_judged_as_any_others(judge, op, case):
    rows = judge(op, case=case, variants=("eager", "triton", "cpp"), deadline=90.0)
    assert {row.way for row in rows} == {"eager", "triton", "cpp"}
    assert {row.word for row in rows} == {"right"}
