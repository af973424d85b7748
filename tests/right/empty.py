"""Zero elements: an empty answer of the right shape; zeros for a product over nothing (I7)."""

import torch

import assay

IDS = "I7"


def inputs(make, m, k):
    return make.normal(m, k), make.normal(k, 3)


op = assay.Op(
    "empties", lambda a, b: a @ b, inputs, cases=assay.grid(m=[0, 2], k=[0, 5]), excludes="size"
)


@op.variant("eager/einsum")
def einsum(a, b):
    return torch.einsum("ik,kj->ij", a, b)


@op.launcher("eager/fills")
def fills(out, a, b):
    torch.mm(a, b, out=out)


@op.launcher("python/loops")
def loops(out, a, b):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            out[i, j] = (a[i] * b[:, j]).sum()
