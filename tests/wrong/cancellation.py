"""What GELU needs at -5.6 excuses nothing at other sizes, nor in an op that needs none of it."""

import torch

import assay

EXPECT = {
    "eager/tanh": ("wrong value", "elements"),
    "eager/nothing_below": ("wrong value", "elements"),
    "eager/a_tail_of_zeros": ("wrong value", "elements"),
}
IDS = "V3 V22"


def inputs(make, n):
    return (make.normal(n, std=4.0),)


gelu = assay.Op("gelu_wrong", torch.nn.functional.gelu, inputs, cases=assay.grid(n=[5000]))


@gelu.variant("eager/tanh")
def tanh(x):
    return torch.nn.functional.gelu(x, approximate="tanh")


@gelu.variant("eager/nothing_below")
def nothing_below(x):
    return torch.where(x < -3, 0, torch.nn.functional.gelu(x))


exp = assay.Op("exponential", torch.exp, inputs, cases=assay.grid(n=[5000]))


@exp.variant("eager/a_tail_of_zeros")
def a_tail_of_zeros(x):
    """Below 1e-5 of the largest output, where a limit on the absolute error sees nothing."""
    y = x.exp()
    return torch.where(y < 1e-5 * y.max(), 0, y)
