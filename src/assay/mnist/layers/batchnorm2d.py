"""batchnorm2d with the statistics of the batch: y = h w + b with h = (x - mean) rstd, by channel.

mean and var (biased) are over batch and plane, rstd = 1 / sqrt(var + 1e-5); no running averages.
With g = mean(dy) and s = mean(dy h), both by channel,

    dx = rstd w (dy - g - h s)      dw = sum dy h      db = sum dy
"""

from __future__ import annotations

import torch.nn.functional as F

from ...inputs import dtype_of
from ...op import Op
from .by_cpp import call
from .by_cuda import block_each

EPSILON = 1e-5


def reference(x, w, b):
    over = (0, 2, 3)
    mean = x.mean(over, keepdim=True)
    rstd = ((x - mean).square().mean(over, keepdim=True) + EPSILON).rsqrt()
    return (x - mean) * rstd * w[:, None, None] + b[:, None, None]


def inputs(make, batch, channels, h, w, dtype):
    return (
        make.normal(batch, channels, h, w, dtype=dtype, mean=0.5),
        make.normal(channels, dtype=dtype, mean=1, std=0.2),
        make.normal(channels, dtype=dtype),
    )


def supports(batch, h, w):
    return batch * h * w > 1 or "one value has no variance"


batchnorm2d: Op = Op(
    "batchnorm2d",
    reference,
    inputs,
    flops=lambda batch, channels, h, w: 8 * batch * channels * h * w,
    bytes=lambda batch, channels, h, w, dtype: (
        (2 * batch * h * w + 2) * channels * dtype_of(dtype).itemsize
    ),
    supports=supports,
    # Squares that overflow, and inf * 0.
    excludes=("x:huge", "w:inf"),
    cases=[
        # Enough values in a channel for its gradient not to be what cancelling leaves; and not in
        # float64, in which the truth is no better than what is judged.
        dict(batch=3, channels=5, h=7, w=11, dtype="float32"),
        dict(batch=8, channels=16, h=28, w=28, dtype="float32"),
        dict(batch=8, channels=32, h=14, w=14, dtype="float32"),
    ],
)


@batchnorm2d.variant("eager/batch_norm")
def by_torch(x, w, b):
    """PyTorch's own kernel: the reference spells the formula out, for its sums to be seen."""
    return F.batch_norm(x, None, None, w, b, True, 0.0, EPSILON)


def formula(dy, x, w):
    over = (0, 2, 3)
    mean = x.mean(over, keepdim=True)
    rstd = ((x - mean).square().mean(over, keepdim=True) + EPSILON).rsqrt()
    h = (x - mean) * rstd
    middle, slope = dy.mean(over, keepdim=True), (dy * h).mean(over, keepdim=True)
    dx = rstd * w[:, None, None] * (dy - middle - h * slope)
    return dx, (dy * h).sum(over), dy.sum(over)


batchnorm2d_grad = batchnorm2d.gradient(
    formula,
    saves=("x", "w"),
    wrt=("x", "w", "b"),
    excludes=("dy:inf", "dy:masked", "dy:huge"),  # its mean is taken off: inf - inf
    flops=lambda batch, channels, h, w: 15 * batch * channels * h * w,
)


def sizes_of(x):
    batch, channels, h, w = x.shape
    return batch, channels, h * w


@batchnorm2d.launcher("cpp", source="layers.cpp")
def by_cpp(lib, y, x, w, b):
    if x.numel():
        call(lib, "batchnorm2d", y, x, w, b, *sizes_of(x), dtype=x.dtype)


@batchnorm2d_grad.launcher("cpp", source="layers.cpp")
def gradient_by_cpp(lib, dx, dw, db, dy, x, w):
    if not x.numel():  # sums of nothing
        dw.zero_()
        db.zero_()
        return
    call(lib, "batchnorm2d_grad", dx, dw, db, dy, x, w, *sizes_of(x), dtype=x.dtype)


@batchnorm2d.launcher("cuda/naive", source="naive.cu")
def by_cuda(lib, y, x, w, b):
    if x.numel():
        lib[f"batchnorm2d<{lib.type(x)}>"](**block_each(x.shape[1]))(y, x, w, b, *sizes_of(x))


@batchnorm2d_grad.launcher("cuda/naive", source="naive.cu")
def gradient_by_cuda(lib, dx, dw, db, dy, x, w):
    if not x.numel():
        dw.zero_()
        db.zero_()
    else:
        kernel = lib[f"batchnorm2d_grad<{lib.type(x)}>"](**block_each(x.shape[1]))
        kernel(dx, dw, db, dy, x, w, *sizes_of(x))
