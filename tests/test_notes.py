"""What the course notes ask of single operators, each shown for itself."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from contract import contract
from tiers import tier

import assay
from assay import ways
from assay.cases import expanded, parse_values
from assay.errors import BuildError
from assay.op import Variant
from assay.ops.counters import float_counters
from assay.ops.polynomial import polynomial
from assay.ops.square import square
from assay.types import Case, Row

Judge = Callable[..., list[Row]]
needs_nvrtc = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("cuda", "cuda.bindings")),
    reason="no NVRTC",
)


# ---- square: 16 x 16 threads, and the sweep of the notes -----------------------------------------


@pytest.mark.full
@needs_nvrtc
@pytest.mark.parametrize(
    ("m", "n", "dtype"),
    [(1, 1, "float32"), (37, 27, "float32"), (15, 33, "float16"), (32, 16, "int32")],
)
def test_blocks_of_16_by_16_threads_square_a_matrix_of_any_size(
    judge: Judge, m: int, n: int, dtype: str
) -> None:
    case = {"m": m, "n": n, "dtype": dtype}
    (row,) = judge("square", case=case, variants=("cuda/two_dimensions",))
    assert (row.word, row.reason) == ("right", "")
    assert row.counters is not None
    (kernel,) = row.counters.kernels
    assert kernel.block == (16, 16, 1)
    assert kernel.grid == (-(-n // 16), -(-m // 16), 1)


LENGTHS = "n=256:12672:128 dtype=float32"


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(name, marks=tier(name, (), ("triton", "cuda/two_dimensions")))
        for name in ("cpp", "triton", "cuda/two_dimensions")
    ],
)
def test_square_is_right_at_every_length_of_the_notes_sweep(judge: Judge, variant: str) -> None:
    """In 3 rows each: on a CPU the 4,096 of the notes would take an hour."""
    rows = judge("square", case=parse_values(f"m=3 {LENGTHS}"), variants=(variant,))
    lengths = [case["n"] for case in expanded(parse_values(LENGTHS))]
    assert (len(lengths), lengths[0], lengths[-1]) == (98, 256, 12_672)
    knobs = {tuple(row.knobs.items()) for row in rows}
    assert sorted(row.case.values["n"] for row in rows) == sorted(lengths * len(knobs))
    assert [(row.label, row.reason) for row in rows if row.word != "right"] == []


@pytest.mark.gallery
@pytest.mark.timeout(300)
@pytest.mark.parametrize("n", [256, 12_672])
def test_square_is_right_at_both_ends_of_the_notes_sweep_in_all_rows(judge: Judge, n: int) -> None:
    case = {"m": 4096, "n": n, "dtype": "float32"}
    ours = ("cpp", "triton", "cuda/naive", "cuda/vectorised")
    rows = judge("square", case=case, variants=ours, deadline=120.0)
    assert {row.variant for row in rows} == set(ours)
    assert [(row.label, row.reason) for row in rows if row.word != "right"] == []


# ---- atomics: what an old GPU has not ------------------------------------------------------------


@needs_nvrtc
@pytest.mark.parametrize(("arch", "refused"), [(520, True), (600, False)])
def test_an_atomic_add_of_a_double_is_refused_below_compute_capability_6(
    tmp_path: Path, arch: int, refused: bool
) -> None:
    """Today's NVRTC compiles for no GPU that old, so it is told that it does."""
    old = tmp_path / "old.h"
    old.write_text(f"#undef __CUDA_ARCH__\n#define __CUDA_ARCH__ {arch}\n")
    source = float_counters.find("cuda/global").source
    assert source is not None
    flags = (f"--pre-include={old}",)
    variant = Variant("cuda", "cuda", lambda k: (), fills=True, source=source, flags=flags)
    job = ways.Job(float_counters, variant, {}, Case(), "cpu", "sm_75", lambda k: None)
    names = ["float_counters_global<double>"]
    if not refused:
        assert ways.way("cuda").compile_source(source, names, job).lowered
        return
    with pytest.raises(BuildError, match=r"counters\.cu:\d+.*needs compute capability 6\.0") as e:
        ways.way("cuda").compile_source(source, names, job)
    assert "build this for sm_60 or above" in e.value.first


# ---- GELU: finite for every finite number --------------------------------------------------------

EVERYWHERE = '''
"""GELU of every finite number of 16 bits; in float32 of 128 for each sign and exponent."""
import torch

from assay.ops.activations import of_gelu, of_gelu_tanh
from assay.ops.activations.activation import activation


def everywhere(make, n, dtype):
    if dtype == "float32":
        high = torch.arange(-256, 256, dtype=torch.int32)[:, None] << 23
        low = make.integers(512, 128, low=0, high=1 << 23, dtype="int32")
        low[:, 0], low[:, 1] = 0, (1 << 23) - 1
        bits = (high + low).flatten()
    else:
        bits = torch.arange(-(1 << 15), 1 << 15).short()
    x = bits.view(getattr(torch, dtype))
    x = x[x.isfinite()]
    assert len(x) == n
    return (x[make.normal(n).argsort()],)


cases = [
    dict(n=510 * 128, dtype="float32"),
    dict(n=62 * 1024, dtype="float16"),
    dict(n=510 * 128, dtype="bfloat16"),
]
OP = activation("OP", of_OP, everywhere, flops=20, cases=cases)


@OP.variant("eager/notes")
def of_the_notes(x):
    e = torch.exp(2 * 0.7978845608 * (x + 0.044715 * x * x * x))
    return 0.5 * x * (1 + (e - 1) / (e + 1))
'''


WIDER = {f"{op} {d}" for op in ("gelu", "gelu_tanh") for d in ("float32", "bfloat16")}
WIDER |= {"gelu_tanh float16"}
"""Left to the gallery's tier."""


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        pytest.param(op, dtype, marks=tier(f"{op} {dtype}", (), WIDER))
        for op in ("gelu", "gelu_tanh")
        for dtype in ("float32", "float16", "bfloat16")
    ],
)
def test_gelu_of_every_finite_number_is_finite_and_right(judge: Judge, op: str, dtype: str) -> None:
    """Right is finite: what is not finite must be where the reference has it, and it has none."""
    text = EVERYWHERE.replace("OP", op)
    rows = judge(text, case={"dtype": dtype}, variants=("eager", "eager/notes", "cuda*", "triton*"))
    words = {row.variant: (row.word, row.reason) for row in rows if row.variant != "eager/notes"}
    assert set(words) == {"eager", "cuda/naive", "cuda/vectorised", "triton"}
    assert set(words.values()) == {("right", "")}
    (notes,) = [row for row in rows if row.variant == "eager/notes"]
    assert notes.word == "wrong value"
    assert "NaN where the reference has none" in notes.reason


# ---- the polynomial, and extensions with a backward ----------------------------------------------


def test_the_parabola_of_the_notes_is_7_at_2_and_its_slope_5() -> None:
    for dtype in (torch.float64, torch.float32, torch.float16):
        c = torch.ones(3, dtype=dtype)
        x = torch.tensor([2.0, -1.0, 0.0], dtype=dtype, requires_grad=True)
        y = assay.ops.polynomial(x, c)
        y.backward(torch.ones_like(y))
        assert y.tolist() == [7, 1, 1]
        assert x.grad is not None
        assert x.grad.tolist() == [5, -1, 1]


@pytest.mark.parametrize("terms", [1, 2, 3, 6])
def test_a_polynomial_passes_gradcheck_in_float64(terms: int) -> None:
    x, c = _doubles(7), _doubles(terms, seed=1)
    assert torch.autograd.gradcheck(lambda v: assay.ops.polynomial(v, c), x.requires_grad_())


@pytest.mark.full
@pytest.mark.timeout(300)
def test_an_extension_keeps_the_contract_with_a_backward_of_its_own() -> None:
    """Fake, opcheck, torch.compile and gradients; then gradcheck: compiled C++ both ways."""
    f = assay.torch_op(polynomial, "extension", backward="extension")
    x, c = torch.randn(7, 33), torch.randn(4)
    assert f.serves(x, c) == "extension, named"
    assert f.gradient is not None
    assert f.gradient.serves(x, x, c) == "extension, named"
    contract(f, x, c, absent={"gradient of one input", "double backward"})
    few, terms = _doubles(5), _doubles(4, seed=1)
    assert torch.autograd.gradcheck(lambda v: f(v, terms), few.requires_grad_())


@pytest.mark.gallery
@pytest.mark.timeout(300)
@pytest.mark.parametrize("backward", ["extension", "cpp"])
def test_an_extension_keeps_the_contract_with_its_backward_and_that_of_another_way(
    backward: str,
) -> None:
    f = assay.torch_op(square, "extension", backward=backward)
    x = torch.randn(7, 33)
    assert f.serves(x) == "extension, named"
    assert f.gradient is not None
    assert f.gradient.serves(x, x) == f"{backward}, named"
    contract(f, x, absent={"gradient of one input"})


def _doubles(n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
