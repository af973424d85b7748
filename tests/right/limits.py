"""A limit set by the user is printed as such (V4), and `accept` judges what has many answers."""

import torch

import assay

IDS = "V4 V16"

FINDS = {
    "eager/coarse": "limit set by you: |error| <= 0.01",
    "eager/other_order": "judged by the Op's own accept",
    "eager/jitters": "two runs on the same inputs differ in ",
}


def inputs(make, n):
    return (make.normal(n),)


op = assay.Op("coarse", lambda x: x * 2, inputs, limit=0.01, cases=assay.grid(n=[40]))


@op.variant("eager/coarse")
def coarse(x):
    return x * 2 + 0.005


exactly = assay.Op("exactly", lambda x: x.clone(), inputs, limit=0.0, cases=assay.grid(n=[40]))


@exactly.variant("eager/copied")
def copied(x):
    return torch.cat([x])


def accept(outputs, inputs):
    return torch.equal(outputs[0].sort().values, inputs[0].sort().values) or "not a permutation"


shuffle = assay.Op("shuffle", lambda x: x.flip(0), inputs, accept=accept, cases=assay.grid(n=[40]))


@shuffle.variant("eager/other_order")
def other_order(x):
    return x.roll(3)


loose = assay.Op("jitter", lambda x: x.exp(), inputs, cases=assay.grid(n=[40]))


calls = []


@loose.variant("eager/jitters")
def jitters(x):
    calls.append(None)
    return x.exp() * (1 + 1.2e-7 * (len(calls) % 3))
