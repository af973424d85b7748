"""The library's row operators and pointwise ones on tensors of other dimensions: rows of rows.

Judged by test_shapes.py: each Op of the library with its own variants, and inputs reshaped.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import torch

import assay
from assay.op import Op
from assay.target import load_op, parse

LEADING = (2, 3)
"""Of 6 rows, or of 6 n elements."""
ROWS = {"rows": 6, "n": 40}
CASES: dict[str, dict[str, Any]] = {
    "softmax": ROWS,
    "softmax_grad": ROWS,
    "log_softmax": ROWS,
    "log_softmax_grad": ROWS,
    "layernorm": ROWS,
    "layernorm_grad": ROWS,
    "rmsnorm": ROWS,
    "rmsnorm_grad": ROWS,
    "row_sum": ROWS,
    "sum": {"n": 60},
    "gelu": {"n": 60},
    "gelu_grad": {"n": 60},
    "vecadd": {"n": 60},
    "scale_bias": {"n": 60},
    "polynomial": {"n": 60, "terms": 4},
}


def moved(op: Op) -> Op:
    """The Op with its variants, on inputs that have two dimensions where its cases have one."""

    @functools.wraps(op.inputs)
    def inputs(make: assay.inputs.Make, **case: Any) -> tuple[Any, ...]:
        made = op.inputs(make, **case)
        first = made[0].shape[0]
        return tuple(
            x.reshape(*LEADING, first // 6, *x.shape[1:]).squeeze(2)
            if isinstance(x, torch.Tensor) and x.shape[0] == first
            else x
            for x in made
        )

    other = replace(op, name=f"{op.name}_moved", inputs=inputs, cases=op.cases[:1], of=None)
    names = {variant.name for variant in other.variants}
    other.variants.extend(variant for variant in op.variants if variant.name not in names)
    return other


for name in CASES:
    globals()[f"{name}_moved"] = moved(load_op(parse(name), name))
