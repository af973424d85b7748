"""Softmax written otherwise: online, through log-sum-exp, with powers of two, flushed (V22)."""

import math

import torch

import assay

IDS = "V3 V22"


def inputs(make, n, std, dtype):
    return (make.normal(4, n, std=std, dtype=dtype),)


op = assay.Op(
    "softmaxes",
    lambda x: torch.softmax(x, -1),
    inputs,
    cases=assay.grid(n=[1, 100], std=[1.0, 30.0], dtype=["float32", "bfloat16"]),
    # `online` takes column after column in Python, and makes NaN of a row that begins with -inf.
    # `log_sum_exp` loses at 1e4 what the largest value cancels.
    excludes=("size", "inf", "masked", "wide", "huge"),
)


@op.variant("eager/online")
def online(x):
    top = torch.full(x.shape[:-1], -math.inf)
    total = torch.zeros(x.shape[:-1])
    for column in x.float().unbind(-1):
        larger = torch.maximum(top, column)
        total = total * (top - larger).exp() + (column - larger).exp()
        top = larger
    return ((x.float() - top[:, None]).exp() / total[:, None]).to(x.dtype)


@op.variant("eager/log_sum_exp")
def log_sum_exp(x):
    wide = x.float()
    return (wide - wide.logsumexp(-1, keepdim=True)).exp().to(x.dtype)


@op.variant("eager/powers_of_two")
def powers_of_two(x):
    wide = x.float() * (1 / math.log(2))
    e = torch.exp2(wide - wide.amax(-1, keepdim=True))
    return (e * (1 / e.sum(-1, keepdim=True))).to(x.dtype)


@op.variant("eager/flushed", layouts="any")
def flushed(x):
    """Denormal results flushed to zero, as fast division does."""
    y = torch.softmax(x.float(), -1)
    return torch.where(y < torch.finfo(torch.float32).smallest_normal, 0, y).to(x.dtype)
