"""Kernels that nobody wrote for Assay, each brought the way its owner has it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from assay.errors import AssayError
from assay.pipeline import exit_code
from assay.target import from_object, load, parse
from assay.ways import triton

EXAMPLES = Path(__file__).parents[1] / "examples"


def words(rows):
    return {row.label: row.word for row in rows}


def reasons(rows):
    return {row.label: row.reason for row in rows}


@pytest.mark.full
def test_the_swish_file_as_the_design_prints_it(judge):
    rows = judge(EXAMPLES / "swish.py", case={"n": 1000, "dtype": "float32"})
    blocks = {f"triton BLOCK={block}": "right" for block in (256, 1024, 4096)}
    assert words(rows) == {"eager": "right", **blocks}
    assert all(row.verdict.judge == "sm_80" for row in rows if row.way == "triton")
    assert {row.flops for row in rows} == {4000}
    assert {row.bytes for row in rows} == {8000}
    assert exit_code(rows) == 0


@pytest.mark.full
def test_swish_without_the_mask_of_its_store(judge):
    text = (EXAMPLES / "swish.py").read_text()
    unmasked = text.replace("v * tl.sigmoid(v), i < n)", "v * tl.sigmoid(v))")
    assert unmasked != text
    rows = judge(unmasked, case={"n": 1, "dtype": "float32"})
    assert words(rows)["eager"] == "right"
    for block in (256, 1024, 4096):
        row = next(r for r in rows if r.knobs == {"BLOCK": block})
        assert row.word == "wrote outside"
        # The first store that reaches beyond the only element, with its line and its thread.
        line = 1 + unmasked[: unmasked.index("v * tl.sigmoid(v))")].count("\n")
        assert f".py:{line}: thread 0 of block 0 writes" in row.reason
        assert "the end of output 0" in row.reason
        assert row.verdict.faults[0].line == line
        assert row.timing is None
    assert exit_code(rows) == 1


@pytest.mark.full
def test_bfloat16_is_not_judged_in_the_interpreter(judge, monkeypatch):
    monkeypatch.setattr(triton, "watches", lambda: False)
    rows = judge(EXAMPLES / "swish.py", case={"n": 1000, "dtype": "bfloat16"})
    judged = [row for row in rows if row.way == "triton"]
    assert len(judged) == 3
    for row in judged:
        assert (row.word, row.outcome) == ("not run", "absent")
        assert "truncates casts to 16 bits" in row.reason


FUNCTIONS = """
import torch

def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)

def unnormalised(x):
    return x.exp()

def fills(out, x):
    out.copy_(softmax(x))

def fills_half(out, x):
    out[:32] = softmax(x)[:32]

def scaled(w, x):
    return x * w
"""
LIKE = {"like": "torch.softmax(x, -1)", "inputs": ("x=normal(64, 100)",)}


@pytest.fixture
def functions(tmp_path):
    path = tmp_path / "mykernels.py"
    path.write_text(FUNCTIONS)
    return path


@pytest.mark.parametrize(
    ("name", "options", "word", "part"),
    [
        pytest.param("softmax", LIKE, "right", "", marks=pytest.mark.full),
        ("unnormalised", LIKE, "wrong value", "every element"),
        ("fills", {**LIKE, "fills": True}, "right", ""),
        ("fills_half", {**LIKE, "fills": True}, "not written", "3,200 of 6,400 elements"),
        ("fills", LIKE, "crashed", "missing 1 required positional argument"),
    ],
)
def test_a_bare_function_and_what_it_is_like(judge, functions, name, options, word, part):
    rows = judge(parse(f"{functions}:{name}", **options))
    assert words(rows) == {"eager": "right", f"eager/{name}": word}
    assert part in reasons(rows)[f"eager/{name}"]


def test_inputs_of_like_go_by_name_each_value_a_case(judge, functions):
    target = parse(
        f"{functions}:scaled",
        like="x * w",
        inputs=("x=normal(3, 1 << 4, bfloat16)", "w=uniform(16, dtype=bfloat16)", "w=2.0"),
    )
    rows = judge(target)
    assert [row.word for row in rows] == ["right"] * 4
    assert {row.case.values["w"] for row in rows} == {"uniform(16, dtype=bfloat16)", 2.0}


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"like": "torch.softmax(y, -1)", "inputs": ("x=normal(4)",)}, "name 'y' is not defined"),
        ({"like": "torch.softmax(", "inputs": ("x=normal(4)",)}, "--like 'torch.softmax('"),
        ({"like": "x", "inputs": ("x=gaussian(4)",)}, "makers are normal, uniform"),
        ({"like": "x", "inputs": ("x=normal(4",)}, "is no expression"),
        ({"like": "x", "inputs": ()}, "--like needs at least one --input"),
        ({"like": "x.no_such()", "inputs": ("x=normal(4)",)}, "no attribute 'no_such'"),
    ],
)
def test_what_like_cannot_read_is_the_users_mistake(judge, functions, options, part):
    with pytest.raises(AssayError) as caught:
        judge(parse(f"{functions}:softmax", **options))
    assert part in str(caught.value)


def test_a_function_that_does_not_say_what_it_computes(judge, functions):
    with pytest.raises(AssayError, match="say what it computes: --like"):
        judge(parse(f"{functions}:softmax"))


def pair(new: Path) -> object:
    return parse(str(new), kernelbench=str(EXAMPLES / "kernelbench" / "reference.py"))


def test_a_kernelbench_pair(judge):
    rows = judge(pair(EXAMPLES / "kernelbench" / "new.py"))
    assert words(rows) == {"eager": "right", "eager/ModelNew": "right"}


@pytest.mark.full
@pytest.mark.parametrize(
    ("old", "new", "word", "part"),
    [
        ("+ self.linear.bias", "", "wrong value", "every element"),
        ("e / e.sum(-1, keepdim=True)", "torch.empty_like(e)", "not written", "320 of 320"),
        (
            "e / e.sum(-1, keepdim=True)",
            "(e / e.sum(-1, keepdim=True)).double()",
            "wrong dtype",
            "",
        ),
        ("e / e.sum(-1, keepdim=True)", "torch.zeros_like(e)", "wrong value", "every element"),
    ],
)
def test_a_kernelbench_pair_that_is_wrong(judge, tmp_path, old, new, word, part):
    text = (EXAMPLES / "kernelbench" / "new.py").read_text()
    assert old in text
    (tmp_path / "new.py").write_text(text.replace(old, new))
    rows = judge(pair(tmp_path / "new.py"))
    assert words(rows) == {"eager": "right", "eager/ModelNew": word}
    assert part in reasons(rows)["eager/ModelNew"]


def test_half_a_kernelbench_pair_is_the_users_mistake(judge, tmp_path):
    (tmp_path / "new.py").write_text("class Other: pass\n")
    with pytest.raises(AssayError, match="has no ModelNew"):
        judge(pair(tmp_path / "new.py"))


AUTOTUNED = """
import torch, triton, triton.language as tl
import assay

@triton.autotune(
    configs=[triton.Config({"BLOCK": size}) for size in (64, 128, 512)],
    key=["n"],
)
@triton.jit
def kernel(x, y, n, GRID: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, i < n) + 1, i < n)

def plus_one(x):
    y = torch.empty_like(x)
    kernel[(4,)](x, y, x.numel(), 4)
    return y
"""


@pytest.mark.full
def test_each_configuration_of_an_autotuned_kernel_is_judged_alone(judge, tmp_path):
    """Four blocks of 64 are half of 512 elements: what the others wrote must not complete it."""
    (tmp_path / "tuned.py").write_text(AUTOTUNED)
    rows = judge(
        parse(f"{tmp_path / 'tuned.py'}:plus_one", like="x + 1", inputs=("x=normal(512)",))
    )
    tuned = {row.knobs["kernel"].split(",")[0]: row for row in rows if row.way == "triton"}
    assert {block: row.word for block, row in tuned.items()} == {
        "BLOCK:64": "not written",
        "BLOCK:128": "right",
        "BLOCK:512": "right",
    }
    assert tuned["BLOCK:64"].reason == "256 of 512 elements of output 0, first at [256]"


PACKAGE = {
    "kit/__init__.py": "",
    "kit/maths.py": "def twice(x):\n    return 2 * x\n",
    "kit/kernels/__init__.py": "",
    "kit/kernels/scale.py": (
        "import assay\nfrom ..maths import twice\n\n"
        "def scale(x):\n    return twice(x)\n\n"
        "op = assay.Op('scale', lambda x: x + x, lambda make, n: (make.normal(n),),\n"
        "              cases=assay.grid(n=[9]))\n"
        "op.variant('eager/scale')(scale)\n"
    ),
    "kit/script.py": (
        "import assay\nfrom .kernels.scale import op\n\n"
        "rows = assay.check(op)\nraise SystemExit('never reached in a child')\n"
    ),
}


@pytest.fixture
def package(tmp_path):
    for name, text in PACKAGE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "kit"


@pytest.mark.full
def test_a_function_inside_a_package_with_relative_imports(judge, package):
    target = parse(
        f"{package / 'kernels' / 'scale.py'}:scale", like="2 * x", inputs=("x=normal(5)",)
    )
    assert words(judge(target)) == {"eager": "right", "eager/scale": "right"}
    rows = judge(package / "kernels" / "scale.py")
    assert words(rows) == {"eager": "right", "eager/scale": "right"}


@pytest.mark.full
def test_a_script_in_a_package_that_checks_at_import(judge, package):
    assert words(judge(package / "script.py")) == {"eager": "right", "eager/scale": "right"}


SCRIPT = """
import assay

op = assay.Op("third", lambda x: x / 3, lambda make, n: (make.normal(n),), cases=assay.grid(n=[9]))

@op.variant("eager/product")
def product(x):
    return x * (1 / 3)

rows = assay.check(op)
raise SystemExit("never reached in a child")
"""


def test_a_script_that_checks_at_import_does_not_start_over(judge):
    assert words(judge(SCRIPT)) == {"eager": "right", "eager/product": "right"}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("import sys\nsys.exit('no GPU here')\n", "written0.py:2: SystemExit: no GPU here"),
        ("import no_such_module\n", "written0.py:1: ModuleNotFoundError"),
        ("x = (\n", "written0.py:1: SyntaxError"),
        ("import assay\nx = 1\n", "it defines no assay.Op"),
        ("import os\nos.abort()\n", "SIGABRT"),
    ],
)
def test_a_file_that_cannot_be_imported_is_named_with_its_line(judge, text, part):
    with pytest.raises(AssayError) as caught:
        judge(text)
    assert part in str(caught.value)


def op_text(reference: str, inputs: str, rest: str = "") -> str:
    return (
        f"import torch, assay\nW = torch.ones(4)\ndef reference(x):\n    return {reference}\n"
        f"def inputs(make, n):\n    return {inputs}\n"
        "op = assay.Op('op', reference, inputs, cases=assay.grid(n=[4]))\n"
        f"@op.variant('eager/same')\ndef same(x):\n    return 1 * reference(x)\n{rest}"
    )


@pytest.mark.parametrize(
    ("reference", "inputs", "parts"),
    [
        ("x.float().exp()", "(make.normal(n),)", ["leaves float64", "written0.py:4", "x.float()"]),
        ("x.half() + 1", "(make.normal(n),)", ["leaves float64", "written0.py:4"]),
        ("x @ W", "(make.normal(n),)", ["the reference, on float64", "written0.py:4"]),
        ("x.tolist()", "(make.normal(n),)", ["output 0 of the reference is a float"]),
        ("x / nothing", "(make.normal(n),)", ["NameError", "written0.py:4"]),
        ("x + 1", "(make.nothing(n),)", ["inputs(n=4)", "AttributeError", "written0.py:6"]),
        ("x + 1", "make.normal(n)", ["return a tuple"]),
        ("x[0] + 1", "([make.normal(n)],)", ["input 0 is a list"]),
        (
            "x + 1",
            "(torch.full((n,), float(__import__('time').perf_counter_ns() % 999)),)",
            ["gives other values at every call", "draw them from `make`"],
        ),
    ],
)
def test_an_op_at_fault_is_the_users_mistake_and_no_kernels(judge, reference, inputs, parts):
    with pytest.raises(AssayError) as caught:
        judge(op_text(reference, inputs))
    for part in parts:
        assert part in str(caught.value)


def test_all_zero_weights_prove_nothing(judge):
    rows = judge(op_text("x @ torch.zeros(4, 4, dtype=x.dtype)", "(make.normal(n),)"))
    assert words(rows) == {"eager": "check too weak", "eager/same": "check too weak"}
    assert "zeros would pass every case" in rows[0].reason
    assert exit_code(rows) == 3


def test_no_process_of_a_kernel_outlives_it(judge):
    rows = judge(
        op_text("x + 1", "(make.normal(n),)")
        + "    \n@op.variant('eager/forks')\ndef forks(x):\n    import subprocess\n"
        "    subprocess.Popen(['sleep', '3602.75'], start_new_session=True)\n    return x + 1\n"
    )
    assert words(rows)["eager/forks"] == "right"
    end = time.monotonic() + 5
    while "3602.75" in (
        left := subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    ):
        assert time.monotonic() < end, left
        time.sleep(0.05)


CACHED = """
kept = {}

@op.variant("eager/by_identity")
def by_identity(x):
    key = x.data_ptr(), x.shape
    if key not in kept:
        kept[key] = reference(x)
    return kept[key].clone()
"""


def test_an_answer_kept_by_identity_gets_no_time(judge):
    rows = judge(op_text("x.exp()", "(make.normal(n),)", CACHED), timed=True)
    row = next(r for r in rows if r.variant == "eager/by_identity")
    assert row.timing is None, row
    assert row.word == "stale answer"
    assert next(r for r in rows if r.variant == "eager/same").timing is not None


def test_an_op_object_is_found_again_by_its_file(judge, tmp_path):
    path = tmp_path / "objects.py"
    path.write_text(op_text("x + 1", "(make.normal(n),)"))
    (op,) = load(parse(str(path)))
    assert words(judge(from_object(op, tmp_path / "cells"))) == {
        "eager": "right",
        "eager/same": "right",
    }


def test_the_package_of_the_check_does_not_hide_the_verb_check():
    import assay
    import assay.verdict.judge

    with pytest.raises(AssayError, match=r"no_such\.py: there is no file"):
        assay.check("no_such.py")
