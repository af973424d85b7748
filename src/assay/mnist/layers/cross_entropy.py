"""cross_entropy: log-softmax and mean negative log-likelihood in one, from logits.

With p = softmax(x), loss = mean_r(log sum_j exp(x[r, j]) - x[r, label_r]), and
dx[r, j] = dloss (p[r, j] - [j = label_r]) / rows. The largest logit of a row is taken out first, so
no exp overflows.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ...inputs import dtype_of
from ...op import Op
from .by_cpp import call

BLOCK = 256


def reference(x, labels):
    return F.cross_entropy(x, labels)


def inputs(make, rows, classes, dtype):
    return (
        make.normal(rows, classes, dtype=dtype, std=3),
        make.integers(rows, low=0, high=max(1, classes)),
    )


cross_entropy: Op = Op(
    "cross_entropy",
    reference,
    inputs,
    flops=lambda rows, classes: 4 * rows * classes,
    bytes=lambda rows, classes, dtype: (rows * classes + 1) * dtype_of(dtype).itemsize + 8 * rows,
    supports=lambda rows, classes: (rows > 0 and classes > 0) or "no mean of no rows",
    excludes=("x:inf", "x:masked"),  # inf - inf, or a label that has no probability at all
    cases=[
        dict(rows=3, classes=4, dtype="float32"),
        dict(rows=7, classes=33, dtype="float64"),
        dict(rows=64, classes=10, dtype="float32"),
        dict(rows=1024, classes=10, dtype="float32"),
    ],
)


def formula(dloss, x, labels):
    p, hot = torch.softmax(x, -1), F.one_hot(labels, x.shape[-1]).bool()
    # p - 1 of the label, as minus what the others have: where p is nearly 1 no digits cancel.
    others = p.masked_fill(hot, 0).sum(-1, keepdim=True)
    return dloss * torch.where(hot, -others, p) / x.shape[0]


cross_entropy_grad = cross_entropy.gradient(
    formula,
    saves=("x", "labels"),
    wrt="x",
    flops=lambda rows, classes: 6 * rows * classes,
    bytes=lambda rows, classes, dtype: (
        (2 * rows * classes + 1) * dtype_of(dtype).itemsize + 8 * rows
    ),
)


@cross_entropy.launcher("cpp", source="layers.cpp")
def by_cpp(lib, loss, x, labels):
    call(lib, "cross_entropy", loss, x, labels, *x.shape, dtype=x.dtype)


@cross_entropy_grad.launcher("cpp", source="layers.cpp")
def gradient_by_cpp(lib, dx, dloss, x, labels):
    call(lib, "cross_entropy_grad", dx, dloss, x, labels, *x.shape, dtype=x.dtype)


@cross_entropy.launcher("cuda/naive", source="naive.cu")
def by_cuda(lib, loss, x, labels):
    one = {"grid": 1, "block": BLOCK, "shared": 0}
    lib[f"cross_entropy<{lib.type(x)}>"](**one)(loss, x, labels, *x.shape)


@cross_entropy_grad.launcher("cuda/naive", source="naive.cu")
def gradient_by_cuda(lib, dx, dloss, x, labels):
    if not x.numel():
        return
    rows = {"grid": (x.shape[0] + BLOCK - 1) // BLOCK, "block": BLOCK, "shared": 0}
    lib[f"cross_entropy_grad<{lib.type(x)}>"](**rows)(dx, dloss, x, labels, *x.shape)
