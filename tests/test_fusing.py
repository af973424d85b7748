"""`assay fuse`: formulas to kernels, their gradients, and what no formula is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import assay
from assay.cli import app
from assay.errors import AssayError
from assay.fusing import emit
from assay.fusing.derive import gradient
from assay.fusing.expression import parse
from assay.fusing.file import written
from assay.fusing.functions import FUNCTIONS
from assay.types import Row

EVERY = {
    "smooth": "2 + tanh(a) / (2 + erf(b) ** 2) + exp(-(a ** 4)) * sigmoid(b - a ** 3)",
    "waves": "sin(a) * cos(b)",
    "kinks": "maximum(a, b) * abs(c) + minimum(b, c) - floor(a) + where(a > b, a, 0.5 * c)",
    "roots": "log(1 + a ** 2) + sqrt(b * b + 0.25) * (1 + c * c) ** -0.5",
    "truths": "(a > 0.5 and b <= c) or not (a != b) | (c >= a) & (a < 2 * b) | (a == c)",
}
Judge = Callable[..., list[Row]]


def run(text: str, values: dict[str, torch.Tensor]) -> torch.Tensor:
    """What the steps of a formula give, line by line."""
    chain = parse(text)
    names: dict[str, object] = {"torch": torch, **values}
    exec("\n".join(emit.torch_lines(chain.steps)), names)
    found = names[chain.result]
    assert isinstance(found, torch.Tensor)
    return found


def drawn(*names: str) -> dict[str, torch.Tensor]:
    torch.manual_seed(3)
    return {n: torch.randn(64, dtype=torch.float64, requires_grad=True) for n in names}


@pytest.mark.parametrize("name", ["smooth", "kinks", "roots", "waves"])
def test_gradients_are_those_of_autograd(name: str) -> None:
    values = drawn("a", "b", "c")
    chain = parse(EVERY[name])
    used = {n: values[n] for n in chain.inputs}
    dy = torch.randn(64, dtype=torch.float64)
    expected = torch.autograd.grad(run(EVERY[name], used), list(used.values()), dy)
    made, found = gradient(chain)
    names: dict[str, object] = {"torch": torch, "dy": dy, **used}
    steps = emit.needed(made, list(found.values()))
    exec("\n".join(emit.torch_lines(steps)), names)
    for one, slope in zip(chain.inputs, expected):
        torch.testing.assert_close(names[str(found[one])], slope)


def test_equal_values_share_a_gradient_and_a_truth_has_none() -> None:
    made, found = gradient(parse("maximum(a, b) + where(a > b, 1.0 * b, 0)"))
    a = torch.tensor([1.0, 2.0])
    names: dict[str, object] = {"torch": torch, "dy": torch.ones(2), "a": a, "b": a.clone()}
    exec("\n".join(emit.torch_lines(emit.needed(made, list(found.values())))), names)
    for name in "ab":
        value = names[str(found[name])]
        assert isinstance(value, torch.Tensor)
        assert value.tolist() == [0.5, 0.5]
    assert "slope" not in written(parse("a > b"), "larger").python


TREES = st.recursive(
    st.sampled_from(["a", "b", "0.5", "3"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda t: f"(-{t})"),
        inner.map(lambda t: f"({t}) ** 2"),
        st.tuples(inner, inner).map(lambda t: f"where({t[0]} + a < b, a * {t[1]}, b)"),
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(TREES)
def test_any_formula_gives_what_python_gives(text: str) -> None:
    values = drawn("a", "b")
    formula = f"a + b * ({text})"
    expected = eval(formula, {"where": torch.where, **values})
    torch.testing.assert_close(run(formula, values), expected, rtol=1e-9, atol=1e-9)


def test_what_is_there_already_is_no_new_step() -> None:
    chain = parse("(a + b) * (a + b) + exp(a + b)")
    assert [step.function for step in chain.steps] == ["add", "mul", "exp", "add"]
    assert parse("a + b * (1 / 4 - 0.25)").steps[0].takes == ("b", 0.0)
    assert (
        parse("where(a + b > 0, a + b, a)").result
        == parse("where(a + b > 0, a + b, a)").steps[-1].name
    )


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("a +", "invalid syntax"),
        ("1 + 2", "no function of an input"),
        ("a", "no function of an input"),
        ("a ** 5", "of powers there are 2, 3, 4, 0.5 and -0.5"),
        ("relu(a)", "there are no functions but exp, log"),
        ("exp(a, b)", "exp takes 1 values, not 2"),
        ("exp(a, x=b)", "there are no functions but"),
        ("(a > b) * a", "mul takes a number here: where(a > 0, b, 0) makes a number"),
        ("a and b", "and takes a truth here"),
        ("where(a, b, a)", "where takes a truth here"),
        ("where(a > 0, 1, 0)", "where of numbers alone"),
        ("maximum(a, 0)", "maximum with a number: write where"),
        ("1 / 0 + a", "a division by zero"),
        ("a < b < 3", "no part of a formula"),
        ("True + a", "not True or False"),
        ("y + a", "the generated file uses the name y itself"),
        ("t0 + a", "the generated file uses the name t0 itself"),
        ("a if b else c", "no part of a formula"),
        ("a+b+c+d+e+f+g", "more than 6 inputs"),
    ],
)
def test_what_is_no_formula_is_said_with_its_place(formula: str, why: str) -> None:
    with pytest.raises(AssayError, match="fusing ") as error:
        parse(formula)
    assert why in str(error.value)


def test_the_command_writes_two_files_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(app, ["fuse", "sigmoid(a + b * c)", "--to", "chain.py"])
    assert said.exit_code == 0, said.output
    assert "3 steps of a, b, c in one kernel" in said.output
    assert (tmp_path / "chain.cu").is_file()
    for to, why in (
        ("chain.py", "there already"),
        ("kernel.py", "the name kernel"),
        ("x", "module"),
    ):
        again = CliRunner().invoke(app, ["fuse", "a + b", "--to", to])
        assert why in str(again.exception or again.output)
        assert again.exit_code != 0


def judged(judge: Judge, folder: Path, formula: str, name: str, **options: object) -> None:
    made = written(parse(formula), name)
    (folder / f"{name}.py").write_text(made.python)
    (folder / f"{name}.cu").write_text(made.cuda)
    rows = judge(folder / f"{name}.py", **options)
    assert {row.way for row in rows} >= {"cuda", "triton"}
    for row in rows:
        assert row.word == "right", (row.op, row.label, row.case.label, row.reason)


@pytest.mark.full
def test_a_chain_is_right_in_every_way_with_its_gradient(judge: Judge, tmp_path: Path) -> None:
    judged(judge, tmp_path, EVERY["kinks"], "kinks", case={"n": 1000, "dtype": "bfloat16"})


@pytest.mark.gallery  # g++ takes long over what Triton makes of sin and cos
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", EVERY)
def test_every_function_is_right_in_every_way(judge: Judge, tmp_path: Path, name: str) -> None:
    calls = {step.function for formula in EVERY.values() for step in parse(formula).steps}
    assert calls == set(FUNCTIONS)
    judged(judge, tmp_path, EVERY[name], name, case={"n": 1000}, deadline=100.0)


@pytest.mark.gallery
def test_no_double_precision_creeps_into_float(session: object, tmp_path: Path) -> None:
    from assay.counting import counted_in
    from assay.session import Session
    from assay.target import parse as target

    assert isinstance(session, Session)
    made = written(parse(EVERY["smooth"]), "smooth")
    (tmp_path / "smooth.py").write_text(made.python)
    (tmp_path / "smooth.cu").write_text(made.cuda)
    case = {"n": 1000, "dtype": "float32"}
    for variant in ("cuda", "triton"):
        found = counted_in(
            session, target(f"{tmp_path / 'smooth.py'}:smooth"), variant, case, "sm_90"
        )
        assert "fp64" not in found.counts.classes


@pytest.mark.gpu
@pytest.mark.parametrize("name", EVERY)
def test_a_chain_is_right_on_a_gpu(judge: Judge, tmp_path: Path, name: str) -> None:
    judged(judge, tmp_path, EVERY[name], name, case={"n": 10_007}, device="cuda:0")


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.timeout(120)
def test_small_chains_gain_by_launches_and_large_ones_by_traffic():
    from assay.ops.scale_bias import sigmoid_scale_bias
    from benchmarks import fusion

    fused = assay.torch_op(sigmoid_scale_bias, fusion.VARIANT, "eager")
    small, large = (fusion.measured(n, fused) for n in (1 << 12, 1 << 26))
    assert small["host"] > 2 * small["graph"], "launches"
    assert large["host"] < 1.2 * large["graph"]
    assert 1.7 < large["graph"] / large["fused"] < 2.4, "9 tensors moved, and 4"
