"""The operators of the library in the ways that build quickly; test_gpu.py has them all."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest
import torch

import assay
from assay.inputs import Make
from assay.op import Op, ops_in
from assay.ops.square import square
from assay.target import TOGETHER, library, parse
from assay.types import Row

Judge = Callable[..., list[Row]]
QUICK = ("eager", "python", "triton*", "cuda*", "numba*", "cpp*")


@pytest.mark.parametrize(
    ("op", "case"),
    [
        pytest.param("square", {"m": 37, "n": 27, "dtype": "float32"}, marks=pytest.mark.full),
        pytest.param(  # minutes of g++, and all of it in the test of the gallery as well
            "softmax", {"rows": 2, "n": 5003, "dtype": "float32"}, marks=pytest.mark.gallery
        ),
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
    left_out = [row for row in rows if row.word == "not run"]
    assert {row.word for row in rows if row not in left_out} == {"right"}
    assert all(row.reason for row in left_out), "by `when`, for rows of another length"
    compiled = [row for row in rows if row.way == "cuda" and row not in left_out]
    assert compiled
    for row in compiled:
        assert row.counters
        for kernel in row.counters.kernels:
            assert kernel.arch == "sm_90"
            assert kernel.registers
            assert kernel.spill_load_bytes == kernel.spill_store_bytes == 0


@pytest.mark.gallery
def test_bfloat16_is_judged_where_it_can_be(judge: Judge) -> None:
    case = {"rows": 5, "n": 1025, "dtype": "bfloat16"}
    few = ("eager", "python", "triton*", "cuda/online*", "numba*", "cpp*")
    rows = judge("softmax", case=case, variants=few)
    words = {row.way: (row.word, row.reason) for row in rows}
    assert words["cpp"][0] == words["eager"][0] == "right"
    assert words["triton"][0] == words["cuda"][0] == "right"
    assert "bfloat16" in words["numba"][1]
    assert "bfloat16" in words["python"][1]


VECTOR = {"n": 1003}
ROWS = {"rows": 3, "n": 261}
IMAGES = {"b": 2, "c": 3, "h": 7, "w": 10}
FLOATS = ("float32", "float16", "bfloat16")
GALLERY: dict[str, tuple[dict[str, object], tuple[str, ...]]] = {
    "hello": ({"d": 3, "h": 5, "w": 9, "bx": 4, "by": 2, "bz": 2}, ()),
    "vecadd": (VECTOR, (*FLOATS, "float64", "int32")),
    "vecadd3d": ({"d": 3, "h": 5, "w": 9}, FLOATS),
    "polynomial": ({"n": 1003, "terms": 4}, (*FLOATS, "float64")),
    "scale_bias": (VECTOR, (*FLOATS, "float64")),
    "sigmoid_scale_bias": (VECTOR, (*FLOATS, "float64")),
    "gelu": (VECTOR, FLOATS),
    "gelu_tanh": (VECTOR, FLOATS),
    **{
        name: (VECTOR, (*FLOATS, "float64"))
        for name in ("relu", "tanh", "sigmoid", "elu", "softplus", "swish")
    },
    "row_sum": (ROWS, (*FLOATS, "float64")),
    "sum": (VECTOR, (*FLOATS, "float64")),
    "softmax": (ROWS, (*FLOATS, "float64")),
    "log_softmax": (ROWS, (*FLOATS, "float64")),
    "cross_entropy": (ROWS, (*FLOATS, "float64")),
    "cross_entropy_both": (ROWS, (*FLOATS, "float64")),
    "layernorm": (ROWS, FLOATS),
    "rmsnorm": (ROWS, FLOATS),
    "batchnorm2d": (IMAGES, FLOATS),
    "instancenorm2d": (IMAGES, FLOATS),
    "lrn": ({**IMAGES, "size": 4, "alpha": 1.0, "beta": 0.75, "k": 2.0}, FLOATS),
    "lcn": ({**IMAGES, "size": 3, "least": 0.01}, FLOATS),
    "maxpool2d": ({**IMAGES, "k": 2}, (*FLOATS, "float64")),
    "avgpool2d": ({**IMAGES, "k": 2}, (*FLOATS, "float64")),
    "transpose": ({"m": 33, "n": 70}, (*FLOATS, "float64", "int8")),
    "concat": ({"rows": 3, "p": 12, "q": 21}, (*FLOATS, "int8")),
    "shift_left": (VECTOR, ("int32", "float32", "bfloat16")),
    "masked_scores": ({"heads": 2, "queries": 9, "keys": 24}, FLOATS),
    "bmm": ({"batch": 2, "m": 9, "n": 17, "k": 12}, (*FLOATS, "float64")),
    "histogram": ({"n": 1003, "bins": 20}, ()),
    "counters": ({"n": 1003, "slots": 5}, ()),
    "float_counters": ({"n": 1003, "slots": 5}, ("float32", "float64")),
    "philox": (VECTOR, ()),
}
"""A small case of every operator but square, and the dtypes that it is judged in."""
GRADIENTS = (
    *("polynomial", "gelu", "gelu_tanh", "relu", "tanh", "sigmoid", "elu", "softplus", "swish"),
    *("softmax", "log_softmax", "cross_entropy", "layernorm", "rmsnorm", "batchnorm2d"),
    *("instancenorm2d", "lrn", "bmm"),
    *("maxpool2d", "avgpool2d"),
)
OWN_GRADIENTS = tuple(f"{name}_grad" for name in GRADIENTS)
FORMULAS = (
    *("vecadd", "scale_bias", "sigmoid_scale_bias", "row_sum", "sum", "transpose", "concat"),
    *("masked_scores", "lcn", "vecadd3d"),
)
"""Those whose gradient is a formula without kernels of its own."""
CASES = [
    pytest.param(op, {**case, **({"dtype": dtype} if dtype else {})}, id=f"{op}-{dtype}")
    for name, (case, dtypes) in GALLERY.items()
    for op in (name, *([f"{name}_grad"] if name in GRADIENTS else []))
    for dtype in dtypes or ("",)
]
"""Every operator and gradient, in every dtype."""
OF_EACH_KIND = ("counters", "philox", "shift_left", "vecadd3d", "maxpool2d", "concat")
"""Operators that CI judges, in one dtype each; softmax, gelu and norms have tests of their own."""
ON_CPU = [
    pytest.param(*one.values, id=one.id, marks=marks)
    for one in CASES
    for name, _, dtype in [one.id.partition("-")]
    for first in [name in OF_EACH_KIND and dtype in ("float32", "")]
    for marks in [pytest.mark.full if first else pytest.mark.gallery]
]
"""The same; the other operators, gradients and dtypes by `make test-gallery`."""


def all_right(rows: list[Row]) -> set[str]:
    """The ways that were judged; whatever did not run has to say why."""
    assert [(r.variant, r.word, r.reason) for r in rows if r.word not in ("right", "not run")] == []
    assert all(row.reason for row in rows if row.word == "not run")
    return {row.way for row in rows if row.word == "right"}


@pytest.mark.parametrize(("op", "case"), ON_CPU)
def test_the_gallery_is_right_in_every_way_and_dtype(
    judge: Judge, op: str, case: dict[str, object]
) -> None:
    ways = all_right(judge(op, case=case, variants=QUICK, deadline=120.0))
    assert {"eager", "cuda", "triton"} <= ways


@pytest.mark.full
@pytest.mark.parametrize("op", FORMULAS)
def test_a_formula_is_the_gradient(judge: Judge, op: str) -> None:
    case = {**GALLERY[op][0], "dtype": "float32"}
    assert all_right(judge(f"{op}_grad", case=case, variants=("eager",))) == {"eager"}


def test_sums_of_other_inputs_are_other_sums_however_many_there_are() -> None:
    """In float32 a sum of 2^28 numbers may be off by 0.4 %: those of others must lie further."""
    from assay.ops.row_sum import everything

    means = [float(everything.inputs(Make(seed), 1 << 20, "float32")[0].mean()) for seed in (0, 1)]
    assert abs(means[0] / means[1] - 1) > 0.04


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize("op", [*GALLERY, *OWN_GRADIENTS])
def test_the_gallery_is_right_on_a_gpu(judge: Judge, op: str) -> None:
    """All dtypes at once: most of the time is the start of processes, and of Inductor in one."""
    case, dtypes = GALLERY[op.removesuffix("_grad")]
    rows = judge(op, case=case, dtypes=dtypes, variants=(), device="cuda:0")
    for dtype in dtypes or (None,):
        ways = all_right([row for row in rows if row.case.values.get("dtype") == dtype])
        assert {"eager", "compiled", "cuda", "triton"} <= ways, dtype


@pytest.mark.parametrize(
    ("op", "case"),
    [
        ("hello", {"d": 3, "h": 5, "w": 9, "bx": 4, "by": 2, "bz": 2}),
        ("histogram", {"n": 1003, "bins": 20}),
    ],
)
def test_a_sample_of_the_gallery_is_right(judge: Judge, op: str, case: dict[str, object]) -> None:
    assert all_right(judge(op, case=case, variants=("cuda*",))) == {"cuda"}


def test_every_operator_is_found_by_its_name() -> None:
    """What the parent is told about shared folders is what lies there."""
    assert {*GALLERY, "square"} == set(library())
    defined: dict[str, str] = {}
    for folder in {TOGETHER.get(name, name) for name in library()}:
        for op in ops_in(importlib.import_module(f"assay.ops.{folder}")):
            defined[op.name] = folder
    assert {name for name in defined if "_grad" not in name} == set(library())
    for name, folder in defined.items():
        assert parse(name).module == f"assay.ops.{folder}"


@pytest.mark.full
@pytest.mark.parametrize(
    "case",
    [
        {"d": 1, "h": 1, "w": 1000, "bx": 256, "by": 1, "bz": 1},
        {"d": 1, "h": 30, "w": 50, "bx": 16, "by": 16, "bz": 1},
        {"d": 7, "h": 11, "w": 13, "bx": 8, "by": 4, "bz": 2},
    ],
    ids=["1d", "2d", "3d"],
)
def test_a_thread_knows_its_place_in_one_two_and_three_dimensions(
    judge: Judge, case: dict[str, object]
) -> None:
    assert {"eager", "cuda", "triton"} <= all_right(judge("hello", case=case, variants=QUICK))


def test_philox_gives_the_numbers_of_its_authors_and_an_offset_skips_ahead() -> None:
    """Counter and key 0 of `philox4x32 10` among the known answers that come with Random123."""
    bounds = torch.tensor([0.0, 1.0])
    numbers = assay.ops.philox(bounds, torch.tensor([0, 0]), 4) * 2**24
    assert numbers.tolist() == [0x6627E8D5 >> 8, 0xE169C58D >> 8, 0xBC57AC4C >> 8, 0x9B00DBD8 >> 8]
    ahead = assay.ops.philox(bounds, torch.tensor([7, 6]), 8)
    assert torch.equal(assay.ops.philox(bounds, torch.tensor([7, 5]), 12)[4:], ahead)


def test_every_gradient_has_kernels_of_its_own() -> None:
    for name in GRADIENTS:
        module = importlib.import_module(parse(name).module)
        (forward,) = [op for op in ops_in(module) if op.name == name]
        (gradient,) = forward.gradients
        assert isinstance(gradient, Op)
        assert {"cuda", "triton"} <= {variant.way for variant in gradient.variants}


RACY = """
import assay
from assay.ops.{op} import reference, inputs

SOURCE = '''
{source}
'''
racy = assay.Op("racy", reference, inputs, {declared})

@racy.launcher("cuda", SOURCE)
def by_cuda(k, {takes}):
    k["kernel"](grid={grid}, block=256, shared=0)({passed})
"""
SHIFT = """extern "C" __global__ void kernel(int* x, int n) {
  const int i = threadIdx.x;
  if (i < n - 1) x[i] = x[i + 1];  // no barrier between reading and writing
}"""
COUNT = """extern "C" __global__ void kernel(long long* y, const int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[x[i]] = y[x[i]] + 1;  // what another thread adds meanwhile is lost
}"""


@pytest.mark.parametrize(
    ("op", "parts"),
    [
        (
            "shift_left",
            {
                "source": SHIFT,
                "declared": 'mutates="x", cases=[dict(n=200, dtype="int32")]',
                "takes": "x",
                "grid": "1",
                "passed": "x, x.numel()",
            },
        ),
        (
            "histogram",
            {
                "source": COUNT,
                "declared": "outputs=lambda bins: [((bins,), 'int64')], "
                "cases=[dict(n=1000, bins=16)]",
                "takes": "y, x, bins",
                "grid": "4",
                "passed": "y.zero_(), x, x.numel()",
            },
        ),
    ],
)
def test_without_a_barrier_or_an_atomic_the_notes_race(
    judge: Judge, op: str, parts: dict[str, str]
) -> None:
    (row,) = judge(RACY.format(op=op, **parts), variants=("cuda",))
    assert row.word == "race"


@pytest.mark.parametrize(
    "op",
    [
        pytest.param("gelu_tanh", marks=pytest.mark.full),
        *(
            pytest.param(op, marks=pytest.mark.gallery)
            for op in ("gelu", "gelu_grad", "gelu_tanh_grad")
        ),
    ],
)
@pytest.mark.parametrize("zoo", ["x:huge", "x:wide", "x:zeros"])
def test_gelu_is_finite_for_every_finite_input(judge: Judge, op: str, zoo: str) -> None:
    """The tanh of the notes is inf / inf from about 45 on, and their x^3 is inf sooner still."""
    case = {"n": 1003, "dtype": "float32", "zoo": zoo}
    assert all_right(judge(op, case=case, variants=("cuda*", "triton*"))) == {"cuda", "triton"}


def test_three_spellings_of_square_are_right_and_are_what_they_say(judge: Judge) -> None:
    rows = judge(
        "square", case={"m": 37, "n": 27, "dtype": "float16"}, variants=("eager", "eager/*")
    )
    assert {r.variant: r.word for r in rows} == {
        name: "right" for name in ("eager", "eager/square", "eager/pow")
    }
    with torch.profiler.profile() as seen:
        for name in ("eager", "eager/square", "eager/pow"):
            square.find(name).function(torch.ones(3))
    names = [event.key for event in seen.key_averages()]
    assert {"aten::mul", "aten::square", "aten::pow"} <= set(names)


@pytest.mark.gpu
def test_three_spellings_of_square_are_timed_in_one_schedule_with_intervals() -> None:
    found = assay.bench(
        "square",
        case={"m": 4096, "n": 4096, "dtype": "float32"},
        variants=("eager", "eager/*"),
        device="cuda:0",
    )
    timed = {row.variant: row.timing for row in found if row.timing is not None}
    assert set(timed) == {"eager", "eager/square", "eager/pow"}
    assert len({timing.schedule for timing in timed.values()}) == 1
    assert all(0 < timing.low <= timing.median <= timing.high for timing in timed.values())
