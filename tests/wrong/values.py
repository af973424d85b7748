"""Outputs of the right form that hold wrong values: `wrong value`, with how many and where."""

import torch

import assay

EXPECT = {
    "eager/zeros": ("wrong value", "every element"),
    "eager/copy_of_input": ("wrong value", "every element"),
    "eager/missing_tail": ("wrong value", "1 of 300 elements, worst at [299]"),
    "eager/one_nan": ("wrong value", "1 NaN where the reference has none; first at [7]"),
    "eager/one_inf": ("wrong value", "1 infinite where the reference is finite; first at [7]"),
    "eager/all_nan": ("wrong value", "300 NaN where the reference has none"),
    "eager/half_a_percent": ("wrong value", "every element"),
    "eager/one_in_ten_thousand": ("wrong value", "every element"),
    "eager/shifted": ("wrong value", "every element"),
    "eager/negated": ("wrong value", "every element"),
    "eager/mean_everywhere": ("wrong value", "every element"),
    "eager/first_twice": ("wrong value", "1 of 300 elements, worst at [1]"),
    "python/numpy_zeros": ("wrong value", "every element"),
}
IDS = "V6 V7 X26 X31"


def reference(x):
    return 2 + torch.exp(x)


def inputs(make, n):
    return (make.uniform(n, low=0.5, high=2.0),)


op = assay.Op("values", reference, inputs, cases=assay.grid(n=[300]))


@op.variant("eager/zeros")
def zeros(x):
    return torch.zeros_like(x)


@op.variant("eager/copy_of_input")
def copy_of_input(x):
    return x.clone()


@op.variant("eager/missing_tail")
def missing_tail(x):
    y = torch.zeros_like(x)
    y[:-1] = reference(x[:-1])
    return y


@op.variant("eager/one_nan")
def one_nan(x):
    y = reference(x)
    y[7] = float("nan")
    return y


@op.variant("eager/one_inf")
def one_inf(x):
    y = reference(x)
    y[7] = float("inf")
    return y


@op.variant("eager/all_nan")
def all_nan(x):
    return torch.full_like(x, float("nan"))


@op.variant("eager/half_a_percent")
def half_a_percent(x):
    return 1.005 * reference(x)


@op.variant("eager/one_in_ten_thousand")
def one_in_ten_thousand(x):
    return 1.0001 * reference(x)


@op.variant("eager/shifted")
def shifted(x):
    return reference(x).roll(1)


@op.variant("eager/negated")
def negated(x):
    return -reference(x)


@op.variant("eager/mean_everywhere")
def mean_everywhere(x):
    return reference(x).mean().expand(x.shape).clone()


@op.variant("eager/first_twice")
def first_twice(x):
    y = reference(x)
    y[1] = y[0]
    return y


@op.variant("python/numpy_zeros")
def numpy_zeros(x):
    import numpy

    return numpy.zeros(x.shape, dtype=numpy.float32)
