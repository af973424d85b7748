"""Integers and booleans are exact: one count off is `wrong value`."""

import torch

import assay

EXPECT = {
    "eager/one_off": ("wrong value", "output 0: 1 of 500 elements"),
    "eager/through_float32": ("wrong value", "output 0:"),
    "eager/one_flag": ("wrong value", "output 1: 1 of 500 elements, worst at [9]"),
    "eager/minus_one": ("wrong value", "output 0: every element"),
    "eager/unwritten": ("not written", "500 of 500 elements of output 0"),
    "eager/unwritten_flags": ("not written", "500 of 500 elements of output 1"),
}
IDS = "V8 V9"


def reference(x):
    return x * 3, x % 2 == 0


def inputs(make, n):
    return (make.integers(n, low=1 << 24, high=1 << 26, dtype="int32"),)


op = assay.Op("tripled", reference, inputs, cases=assay.grid(n=[500]))


@op.variant("eager/one_off")
def one_off(x):
    y, even = reference(x)
    y[3] += 1
    return y, even


@op.variant("eager/through_float32")
def through_float32(x):
    return (x.float() * 3).int(), x % 2 == 0


@op.variant("eager/one_flag")
def one_flag(x):
    y, even = reference(x)
    even[9] = ~even[9]
    return y, even


@op.variant("eager/minus_one")
def minus_one(x):
    return torch.full_like(x, -1), x % 2 == 0


@op.launcher("eager/unwritten")
def unwritten(y, even, x):
    even.copy_(x % 2 == 0)


@op.launcher("eager/unwritten_flags")
def unwritten_flags(y, even, x):
    y.copy_(x * 3)
