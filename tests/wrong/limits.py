"""Errors that a fixed limit lets through: below 1e-2, beside a small answer, a part in a hundred.

A row of 393,216 softmax values sums to 1: each is near 2.5e-6, and zeros are within 1e-2 of it.
"""

import torch

import assay

EXPECT = {
    "eager/zeros": ("wrong value", "every element"),
    "eager/half_too_much": ("wrong value", "every element"),
    "eager/a_hundredth_too_much": ("wrong value", "every element"),
}
IDS = {
    "eager/zeros": "V1",
    "eager/half_too_much": "X31",
    "eager/a_hundredth_too_much": "V6",
}


def rows(make, rows, n):
    return (make.normal(rows, n),)


softmax = assay.Op(
    "softmax_of_long_rows",
    lambda x: torch.softmax(x, -1),
    rows,
    cases=[dict(rows=4, n=393_216)],
)


@softmax.variant("eager/zeros")
def zeros(x):
    return torch.zeros_like(x)


def small(make, n):
    return (make.uniform(n, low=0.05, high=0.15, dtype="float16"),)


tenth = assay.Op("tenth", lambda x: 1 * x, small, cases=assay.grid(n=[32]))


@tenth.variant("eager/half_too_much")
def half_too_much(x):
    """0.5 for 0.1 is an absolute error of 0.4."""
    return 1 * x + 0.4


def large(make, n):
    return (100 * make.normal(n),)


hundred = assay.Op("hundreds", lambda x: 1 * x, large, cases=assay.grid(n=[200]))


@hundred.variant("eager/a_hundredth_too_much")
def a_hundredth_too_much(x):
    return 1.0099 * x
