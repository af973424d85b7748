"""Statistics of a part lose no digits where the values that it begins with lie far off."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from assay.types import Row

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


@pytest.mark.parametrize(
    "parts",
    [
        {**PLANES, "given": "made", "direction": "forward", "launcher": "by_cuda"},
        pytest.param(
            {
                **PLANES,
                "given": "(make.normal(*made[0].shape), *made[:2])",
                "direction": "backward",
                "launcher": "gradient_by_cuda",
            },
            marks=pytest.mark.full,
        ),
        pytest.param(
            {
                "op": "layernorm",
                "first": ":, 0",
                "case": "rows=1, n=4096",
                "given": "made",
                "direction": "forward",
                "launcher": "by_cuda_split",
            },
            marks=pytest.mark.full,
        ),
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
