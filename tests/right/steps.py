"""One step of the dtype is rounding, not an error (V5): 1000 against 1004 in bf16 is `right`."""

import torch

import assay


def reference(x):
    return x + 2


def inputs(make, n):
    return (make.full(n, value=1000, dtype="bfloat16"),)


op = assay.Op("steps", reference, inputs, cases=assay.grid(n=[8]))


@op.variant("eager/rounded_up")
def rounded_up(x):
    """1002 lies between 1000 and 1004, the values that bf16 has."""
    return torch.full_like(x, 1004)


@op.variant("eager/rounded_down")
def rounded_down(x):
    return torch.full_like(x, 1000)
