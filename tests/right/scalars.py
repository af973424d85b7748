"""Numbers, bools and strings among the inputs, and a whole tensor that is one number."""

import torch

import assay

IDS = "I8"


def reference(x, alpha, count, negate, mode, shift):
    y = alpha * x * count + shift
    y = y.abs() if mode == "abs" else y
    return -y if negate else y


def inputs(make, n, alpha, mode):
    return make.normal(n), alpha, 3, True, mode, make.normal()


op = assay.Op(
    "scalars", reference, inputs, cases=assay.grid(n=[5], alpha=[2.0, 0.1], mode=["abs", "as is"])
)


@op.launcher("eager/fills")
def fills(out, x, alpha, count, negate, mode, shift):
    out.copy_(reference(x, alpha, count, negate, mode, shift))


@op.variant("eager/by_hand")
def by_hand(x, alpha, count, negate, mode, shift):
    y = torch.add(shift, x, alpha=alpha * count)
    return -y.abs() if mode == "abs" else -y
