"""GELU in float32: 1 + erf(x) cancels, eager's value at -5.6 is 0, and both are `right`."""

import math

import torch

import assay

IDS = "V22"


def inputs(make, n):
    return (make.normal(n, std=4.0),)


op = assay.Op("gelu_wide", torch.nn.functional.gelu, inputs, cases=assay.grid(n=[5000]))


@op.variant("eager/cancels")
def cancels(x):
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


@op.variant("eager/accurate")
def accurate(x):
    return 0.5 * x * torch.erfc(-x / math.sqrt(2))
