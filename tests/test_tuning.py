"""Tuning: choices from rows, where they are kept, which inputs get them, and what is served."""

from __future__ import annotations

import importlib
import json
import math
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from command import assay as command
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay.commands import tuning as tuning_command
from assay.errors import AssayError
from assay.operators import picking
from assay.tuning import lookup, store
from assay.tuning.choosing import Choice, choices
from assay.types import Case, Input, Machine, Row, Timing, replace

MACHINE = Machine(
    id="m",
    cpu="A CPU",
    cores=2,
    memory_bytes=1,
    llc_bytes=1,
    system="L",
    versions={"torch": "2"},
)
X = Input(name="x", dtype="float32", shape=(64, 1000), stride=(1000, 1), low=-4.0, high=4.0)


def row(variant: str, seconds: float, n: int = 1000, **more: Any) -> Row:
    draw = random.Random(variant)
    samples = tuple(seconds * (1 + draw.gauss(0, 0.001)) for _ in range(40))
    timing = Timing(
        samples=samples,
        rounds=tuple(range(40)),
        method=more.pop("method", "cupti"),
        cache="cold L2",
        schedule="s",
        median=seconds,
        low=seconds,
        high=seconds,
        inputs=(replace(X, shape=(64, n), stride=(n, 1)),),
    )
    given = {"device": "cuda:0", "outcome": "pass", "word": "right", "timing": timing, **more}
    way = variant.partition("/")[0]
    return Row(
        op="softmax", variant=variant, way=way, case=Case({"n": n}), source_hash=way, **given
    )


ORDER = ["eager", "triton", "cuda/naive", "cuda/held"]


def test_the_fastest_is_chosen_and_of_equals_the_one_declared_first() -> None:
    rows = [row("cuda/held", 1e-5), row("triton", 1.0001e-5), row("eager", 2e-5)]
    (one,) = choices(rows, ORDER)
    assert (one.variant, one.tied) == ("triton", ("cuda/held",))
    assert one.inputs == (Input(name="x", dtype="float32", shape=(64, 1000), stride=(1000, 1)),)


def test_each_case_has_its_own() -> None:
    rows = [row("triton", 1e-5), row("cuda/held", 2e-5)]
    rows += [row("triton", 9e-5, n=8000), row("cuda/held", 8e-5, n=8000)]
    assert [one.variant for one in choices(rows, ORDER)] == ["triton", "cuda/held"]


def test_what_is_not_served_is_told_if_it_is_faster() -> None:
    rows = [row("compiled", 1e-5), row("triton", 1.5e-5)]
    (one,) = choices(rows, ORDER)
    assert one.variant == "triton"
    assert one.over == ("compiled", 1e-5)
    (level,) = choices([row("compiled", 2e-5), row("triton", 1e-5)], ORDER)
    assert level.over is None


def test_wrong_slow_and_lower_precision_kernels_are_no_choices() -> None:
    rows = [
        row("cuda/naive", 1e-6, precision="tf32"),
        replace(row("cuda/held", 1e-6), timing=None, not_timed="invalid"),
        row("cpp", 1e-6, device="cpu", method="wall"),
        row("eager", 2e-5),
    ]
    assert [one.variant for one in choices(rows, ORDER)] == ["eager"]
    assert list(choices([row("compiled", 1e-5)], ORDER)) == []


def choice(n: int, dtype: str = "float32", **more: Any) -> Choice:
    given: dict[str, Any] = {"op": "softmax", "variant": "triton", "source_hash": "h", **more}
    return Choice(
        knobs={},
        case=Case({"n": n}),
        inputs=(Input(name="x", dtype=dtype, shape=(64, n), stride=(n, 1)),),
        seconds=1e-5,
        low=1e-5,
        high=1e-5,
        cache="hot",
        **given,
    )


def test_the_nearest_of_the_same_dtype_and_dimensions_is_found() -> None:
    kept = [choice(1000), choice(8000), choice(1100, "bfloat16")]
    found, same = lookup.nearest(kept, [("float32", (64, 1000), (1000, 1))])
    assert (found, same) == (kept[0], True)
    found, same = lookup.nearest(kept, [("float32", (64, 4000), (4000, 1))])
    assert (found, same) == (kept[1], False)
    found, same = lookup.nearest(kept, [("float32", (64, 1000), (1, 64))])
    assert (found, same) == (kept[0], False), "its strides were not those that were timed"
    for other in (("float64", (64, 1000), (1000, 1)), ("float32", (64000,), (1,))):
        assert lookup.nearest(kept, [other]) == (None, False)
    assert lookup.nearest(kept, []) == (None, False)


SHAPES = st.lists(st.integers(0, 1 << 20), min_size=1, max_size=4).map(tuple)


@given(SHAPES, SHAPES)
def test_the_distance_is_one_of_shapes(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    there = lookup.distance([("f", one, ())], [("f", other, ())])
    back = lookup.distance([("f", other, ())], [("f", one, ())])
    assert there == pytest.approx(back)
    assert there >= 0
    assert lookup.distance([("f", one, ())], [("f", one, ())]) == 0
    assert math.isinf(there) == (len(one) != len(other))


@pytest.fixture
def kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    picking.this_machine.cache_clear()
    yield tmp_path
    picking.this_machine.cache_clear()


@pytest.mark.usefixtures("kept_apart")
def test_choices_are_kept_by_card_and_compilers_and_newer_ones_take_the_place_of_older() -> None:
    store.save(MACHINE, "cpu", [choice(1000), choice(8000)])
    store.save(MACHINE, "cpu", [choice(1000, variant="cpp")])
    found = {one.case.label: one.variant for one in store.load(MACHINE, "cpu")}
    assert found == {"n=1000": "cpp", "n=8000": "triton"}
    for other in (
        replace(MACHINE, cpu="another"),
        replace(MACHINE, versions={"torch": "2.12"}),
        replace(MACHINE, cores=4),
    ):
        assert store.load(other, "cpu") == ()


@pytest.mark.usefixtures("kept_apart")
def test_a_broken_file_says_what_to_do() -> None:
    path = store.save(MACHINE, "cpu", [choice(1000)])
    path.write_text("{")
    with pytest.raises(AssayError, match="delete it, `assay tune` makes another"):
        store.load(MACHINE, "cpu")


OP = """
import torch
import assay

op = assay.Op(
    "tripled", lambda x: 3 * x, lambda make, n: (make.normal(n),), cases=assay.grid(n=[4096])
)

@op.variant("eager/slow")
def slow(x):
    for _ in range(50):
        y = x * 3
    return y

@op.variant("eager/only_then", when=lambda n: n == 4096)
def only_then(x):
    return torch.mul(x, 3)
"""


@pytest.mark.full
def test_tune_keeps_what_calls_then_run(kept_apart: Path) -> None:
    path = kept_apart / "tripled.py"
    path.write_text(OP)
    done = command(kept_apart, "tune", path.name, "-k", "eager/slow", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    (said,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert said["variant"] == "eager/slow", "it was the only one that was asked for"
    from assay.target import load_op, parse

    op = load_op(parse(str(path)), "tripled")
    served = assay.torch_op(op, "tuned", cpu="tuned")
    assert served.serves(torch.randn(4096)) == "eager/slow, tuned on n=4096"
    assert served.serves(torch.randn(5000)) == "eager/slow, tuned on n=4096"
    assert served.serves(torch.randn(2, 2)).startswith("eager, the usual one: nothing like it")
    x = torch.randn(4096)
    assert torch.equal(served(x), 3 * x)


@pytest.mark.usefixtures("kept_apart")
def test_a_choice_for_one_case_alone_and_one_whose_source_was_edited_serve_no_other(
    tmp_path: Path,
) -> None:
    from assay.describe import digest
    from assay.target import load_op, parse

    path = tmp_path / "tripled.py"
    path.write_text(OP)
    op = load_op(parse(str(path)), "tripled")
    now = digest(op.find("eager/only_then"))
    form = (Input(name="x", dtype="float32", shape=(4096,), stride=(1,)),)
    made = replace(
        choice(4096, op="tripled", variant="eager/only_then", source_hash=now), inputs=form
    )
    store.save(picking.this_machine(), "cpu", [made])
    served = assay.torch_op(op, "tuned", cpu="tuned")
    assert served.serves(torch.randn(4096)).startswith("eager/only_then, tuned on")
    assert "is fastest on n=4096 alone" in served.serves(torch.randn(4097))
    store.save(picking.this_machine(), "cpu", [replace(made, source_hash="edited")])
    again = assay.torch_op(op, "tuned", cpu="tuned")
    assert again.serves(torch.randn(4096)).startswith("eager, the usual one")


def test_where_nothing_is_known_a_gpu_gets_the_last_cuda_variant_that_takes_every_case() -> None:
    from assay.target import load_op, parse

    softmax = load_op(parse("softmax"), "softmax")
    variant, _ = picking.usual(softmax, "cuda")
    assert variant.way == "cuda"
    assert variant.when is None
    assert picking.usual(softmax, "cpu")[0].name == "eager"


def test_a_when_that_can_not_tell_from_scalars_takes_nothing():
    op = assay.Op(
        "by_scalars",
        lambda x, k: x * k,
        lambda make, n, k: (make.normal(n), k),
        cases=[dict(n=8, k=2)],
    )
    op.launcher("triton")(lambda y, x, k: None)
    for name, when in {
        "divides": lambda k: 128 % k == 0 or "no power of two",
        "of_size": lambda n, k: True,
        "of_all": lambda **values: True,
    }.items():
        op.launcher(f"cuda/{name}", source="__global__ void f() {}\n", when=when)(
            lambda k, y, x: None
        )
    usual = {k: picking.usual(op, "cuda", {"k": k})[0].name for k in (2, 3, 0)}
    assert usual == {2: "cuda/divides", 3: "triton", 0: "triton"}
    assert picking.usual(op, "cuda")[0].name == "triton"


def test_the_library_is_a_package_of_functions() -> None:
    x = torch.randn(5, 7, requires_grad=True)
    y = assay.ops.softmax(x)
    assert torch.allclose(y, torch.softmax(x, -1))
    assert assay.ops.softmax.serves(x) == "eager, named"
    (grad,) = torch.autograd.grad(y[:, 0].sum(), x)
    (right,) = torch.autograd.grad(torch.softmax(x, -1)[:, 0].sum(), x)
    assert torch.allclose(grad, right, atol=1e-6)
    compiled = torch.compile(lambda x: assay.ops.square(x), fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(x), x * x)
    importlib.import_module("assay.ops.softmax")  # puts no folder in the function's place

    assert assay.ops.softmax(x).shape == x.shape
    assert "softmax" in dir(assay.ops)
    with pytest.raises(AttributeError, match="no operator 'softmaxx'"):
        _ = assay.ops.softmaxx


def test_tune_says_why_calls_are_not_native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning_command.native.building.cpp, "compiler", lambda: "no-such-compiler")
    assert tuning_command.native_calls("cpu") == ""
    said = tuning_command.native_calls("cuda:0")
    assert said.startswith("calls of operators go by Python: native calls can't be built: no C++")


@pytest.mark.full
def test_tune_on_a_gpu_builds_native_calls() -> None:
    said = tuning_command.native_calls("cuda:0")
    assert re.fullmatch(r"calls of operators are native: (kept|built in \d+\.\d s)", said)
    assert tuning_command.native_calls("cuda:0") == "calls of operators are native: kept"
