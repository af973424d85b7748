"""One step of the dtype is rounding, not an error (V5): 1000 against 1004 in bf16 is `right`."""

import torch

import assay

IDS = "V5"


def reference(x):
    return x + 2


def inputs(make, n):
    """Small numbers, to which 2 can be added, and multiples of 4 between 512 and 1020."""
    x = make.integers(n, low=128, high=256, dtype="bfloat16") * 4
    x[::2] = make.integers(n // 2, low=1, high=100, dtype="bfloat16")
    return (x,)


op = assay.Op("steps", reference, inputs, cases=assay.grid(n=[8]))


@op.variant("eager/rounded_up")
def rounded_up(x):
    """1002 lies between 1000 and 1004, the values that bf16 has."""
    return torch.where(x > 256, x + 4, x + 2)


@op.variant("eager/rounded_down")
def rounded_down(x):
    return torch.where(x > 256, x, x + 2)
