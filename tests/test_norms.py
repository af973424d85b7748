"""Norms: statistics of a part that begins far from its mean; windows at the edges of an image."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay import hardware
from assay.ops.norms import gradient
from assay.types import Row
from assay.ways.launch import Recorder

FIRST_IS_FAR = """
import assay
from assay.ops.{op} import {op} as forward, {op}_grad as backward, {launcher}

usual, reference = forward.inputs, {direction}.reference
del forward, backward  # else they are judged too

def inputs(make, **case):
    made = usual(make, **case)
    made[0][{first}] = 12.0
    return {given}

op = assay.Op("first_is_far", reference, inputs, cases=[dict({case}, dtype="float32")])
op.launcher("cuda/split", source="{op}.cu")({launcher})
"""
PLANES = {"op": "batchnorm2d", "first": ":, :, 0, 0", "case": "b=3, c=6, h=14, w=14"}


@pytest.mark.gallery
@pytest.mark.parametrize(
    "parts",
    [
        {**PLANES, "given": "made", "direction": "forward", "launcher": "by_cuda"},
        {
            **PLANES,
            "given": "(make.normal(*made[0].shape), *made[:2])",
            "direction": "backward",
            "launcher": "gradient_by_cuda",
        },
        {
            "op": "layernorm",
            "first": ":, 0",
            "case": "rows=1, n=4096",
            "given": "made",
            "direction": "forward",
            "launcher": "by_cuda_split",
        },
    ],
    ids=["batchnorm2d", "batchnorm2d_grad", "layernorm"],
)
def test_a_part_that_begins_far_from_its_mean_keeps_its_digits(
    judge: Callable[..., list[Row]], parts: dict[str, str]
) -> None:
    (row,) = [r for r in judge(FIRST_IS_FAR.format(**parts), variants=("cuda*",))]
    assert (row.word, row.reason) == ("right", "")
    assert row.verdict is not None
    assert row.verdict.worst is not None
    assert row.verdict.worst < 0.7, "of what rounding allows"


@pytest.mark.gallery
@pytest.mark.parametrize(
    ("op", "case"),
    [
        ("layernorm", {"rows": 10, "n": 4100, "dtype": "float32"}),
        ("rmsnorm", {"rows": 10, "n": 4100, "dtype": "float32"}),
        ("layernorm", {"rows": 5, "n": 4099, "dtype": "bfloat16"}),
        ("rmsnorm", {"rows": 8, "n": 5000, "dtype": "bfloat16"}),
        ("layernorm", {"rows": 3, "n": 5001, "dtype": "float64"}),
    ],
)
def test_any_number_of_rows_is_written_together(
    judge: Callable[..., list[Row]], op: str, case: dict[str, int | str]
) -> None:
    rows = judge(op, case=case, variants=("cuda/split",))
    assert [row.word for row in rows if row.way == "cuda"] == ["right"]


@pytest.mark.parametrize("arch", ["sm_75", "sm_86", "sm_90", ""])
@given(
    n=st.integers(1, 10_000),
    rows=st.integers(1, 3_000),
    dtype=st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]),
)
def test_rows_on_their_way_fit_the_shared_memory_of_a_card(
    arch: str, n: int, rows: int, dtype: torch.dtype
) -> None:
    """And hold a row: `THREADS` x `VECS` vectors; the next rows and their threads fit beside."""
    k = Recorder(arch)
    x, w = torch.empty(rows, n, dtype=dtype, device="meta"), torch.empty(n, dtype=dtype)
    gradient(k, "layernorm", x, (w, w), x, x, w)
    first, last = k.launches
    assert last.early == first.name.startswith("layernorm_grad_held")
    if not last.early:
        return
    threads, vectors, together, ahead = map(int, re.findall(r"\d+", first.name.split(",", 1)[1]))
    assert threads * vectors * 16 >= n * dtype.itemsize
    assert first.shared == ahead * 2 * vectors * 16 * first.block[0]
    most = hardware.shared_of(arch) or hardware.SHARED[90]
    assert first.shared < most
    assert together * first.block[0] <= 1024, "threads of the smallest multiprocessor"


@pytest.mark.parametrize("size", [1, 4, 5, 9])
def test_a_window_at_an_edge_holds_what_lies_in_the_image(size: int) -> None:
    """The references against PyTorch's own, and against windows cut out by hand."""
    x = torch.randn(2, 6, 5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    ours = assay.ops.lrn.op.reference(x, size, 1.0, 0.75, 2.0)
    torch.testing.assert_close(ours, F.local_response_norm(x, size, 1.0, 0.75, 2.0))
    if size % 2 == 0:
        assert "in its middle" in assay.ops.lcn.op.supports(h=5, w=7, size=size)
        return

    def means(values: torch.Tensor) -> torch.Tensor:
        made, half = torch.empty_like(values), size // 2
        for r in range(5):
            for c in range(7):
                rows, columns = (slice(max(0, i - half), i + half + 1) for i in (r, c))
                made[..., r, c] = values[..., rows, columns].mean((-2, -1))
        return made

    centred = x - means(x)
    expected = centred / means(centred.square()).sqrt().clamp(min=0.5)
    torch.testing.assert_close(assay.ops.lcn.op.reference(x, size, 0.5), expected)
