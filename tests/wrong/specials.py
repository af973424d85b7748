"""NaN and infinity out of place: `wrong value`, with counts; they excuse nothing (V7)."""

import torch

import assay

EXPECT = {
    "eager/zeros": ("wrong value", "without the reference's NaN"),
    "eager/cleaned": ("wrong value", "without the reference's NaN"),
    "eager/all_nan": ("wrong value", "NaN where the reference has none"),
    "eager/other_infinity": ("wrong value", "-inf, expected inf"),
    "eager/clamped": ("wrong value", "expected inf"),
}
IDS = "V7 X26"


def reference(x):
    return x * 2


def inputs(make, n):
    x = make.normal(n)
    x[0], x[1], x[2], x[3] = float("nan"), float("inf"), -float("inf"), -0.0
    return (x,)


op = assay.Op("specials", reference, inputs, cases=assay.grid(n=[64]))


@op.variant("eager/zeros")
def zeros(x):
    return torch.zeros_like(x)


@op.variant("eager/cleaned")
def cleaned(x):
    return torch.where(x.isnan(), 0.0, x * 2)


@op.variant("eager/all_nan")
def all_nan(x):
    return x * float("nan")


@op.variant("eager/other_infinity")
def other_infinity(x):
    return torch.where(x == float("inf"), -x, x * 2)


@op.variant("eager/clamped")
def clamped(x):
    return torch.where(x == float("inf"), torch.finfo(x.dtype).max, x * 2)
