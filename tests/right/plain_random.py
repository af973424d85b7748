"""Inputs drawn without `make`, and leaves that require a gradient (I11)."""

import random

import numpy
import torch

import assay

IDS = "I11"


def inputs(make, n):
    weight = torch.nn.Linear(n, 2).weight
    return torch.randn(3, n), weight, random.random(), torch.from_numpy(numpy.random.rand(2))


op = assay.Op(
    "linear", lambda x, w, a, b: a * x @ w.t(), inputs, cases=assay.grid(n=[7]), excludes="size"
)


@op.variant("eager/functional")
def functional(x, w, a, b):
    return torch.nn.functional.linear(a * x, w)


@op.variant("eager/numpy")
def through_numpy(x, w, a, b):
    return torch.from_numpy(a * x.numpy() @ w.numpy().T).float()
