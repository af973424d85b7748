"""Ops that change an input by declaration, done wrongly; the declaration excuses nothing else."""

import torch

import assay

EXPECT = {
    "eager/does_nothing": ("wrong value", "output 0: every element"),
    "eager/twice": ("wrong value", "output 0: every element"),
    "eager/changes_the_other": ("changed its input", "w, not declared as mutated"),
    "eager/half": ("wrong value", "output 0: 32 of 64 elements"),
    "eager/beside": ("wrote outside", "1 value after the end of output 0"),
    "eager/second_output_is_the_first": ("shares memory", "output 1 lies in the memory of x"),
}
IDS = "V13 O3"
TWIN = {
    "eager/does_nothing": "eager/right",
    "eager/twice": "eager/right",
    "eager/changes_the_other": "eager/right",
    "eager/half": "eager/right",
    "eager/beside": "eager/right",
    "eager/second_output_is_the_first": "eager/right_returned",
}


def reference(x, w):
    return x * w, (x * w).cumsum(0)


def inputs(make, n):
    return make.normal(n), make.uniform(n, low=2.0, high=3.0)


op = assay.Op("scale_in_place", reference, inputs, mutates=("x",), cases=assay.grid(n=[64]))


@op.launcher("eager/right")
def right(total, x, w):
    """Right."""
    x.mul_(w)
    total.copy_(x.cumsum(0))


@op.variant("eager/right_returned")
def right_returned(x, w):
    """Right: a function changes the input and returns what else there is."""
    x.mul_(w)
    return x.cumsum(0)


@op.launcher("eager/does_nothing")
def does_nothing(total, x, w):
    total.copy_((x * w).cumsum(0))


@op.launcher("eager/twice")
def twice(total, x, w):
    total.copy_((x * w).cumsum(0))
    x.mul_(w).mul_(w)


@op.launcher("eager/changes_the_other")
def changes_the_other(total, x, w):
    x.mul_(w)
    w.zero_()
    total.copy_(x.cumsum(0))


@op.launcher("eager/half")
def half(total, x, w):
    total.copy_((x * w).cumsum(0))
    x[:32].mul_(w[:32])


@op.launcher("eager/beside")
def beside(total, x, w):
    x.mul_(w)
    total.copy_(x.cumsum(0))
    x.as_strided((1,), (1,), x.storage_offset() + len(x)).zero_()


@op.variant("eager/second_output_is_the_first")
def second_output_is_the_first(x, w):
    x.mul_(w)
    torch.cumsum(x, 0)
    return x
