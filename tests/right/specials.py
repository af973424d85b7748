"""NaN, infinities, zeros of either sign, denormals and overflow, handled as the reference does."""

import torch

import assay

IDS = "V7 V22"


def inputs(make, n, dtype):
    x = make.normal(n, dtype=dtype)
    x[:6] = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-40, 3e38])
    return (x,)


op = assay.Op(
    "specials_right",
    lambda x: x * 2,
    inputs,
    cases=assay.grid(n=[6, 64], dtype=["float32", "bfloat16", "float64"]),
)


@op.variant("eager/added")
def added(x):
    return x + x


@op.variant("eager/other_nan")
def other_nan(x):
    """Any NaN is a NaN: the sign and the payload are nobody's business."""
    return torch.where(x.isnan(), -float("nan"), x + x)


@op.variant("eager/flushed")
def flushed(x):
    y = x + x
    return torch.where(y.abs() < torch.finfo(x.dtype).smallest_normal, 0, y)


def many_nan(make, n):
    x = make.normal(n)
    x[1:] = float("nan")
    return (x,)


rescued = assay.Op("rescued", lambda x: x.nan_to_num(3.0), many_nan, cases=assay.grid(n=[8]))


@rescued.variant("eager/where")
def where(x):
    return torch.where(x.isnan(), 3.0, x)


def huge_inputs(make, n):
    return (make.uniform(n, low=300, high=705, dtype="float64"),)


huge = assay.Op("huge", torch.exp, huge_inputs, cases=assay.grid(n=[50]))


@huge.variant("eager/squared")
def squared(x):
    return (x / 2).exp().square()
