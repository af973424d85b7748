"""conv2d, 3x3 with a border of one zero: y[b,o,h,w] = bias[o] + sum_{c,i,j} x[b,c,h+i-1,w+j-1] k.

k[o, c, i, j] are the weights. The gradients are two convolutions of the same kind: dx is that of dy
with k turned by 180 degrees, dk correlates dy with x over the batch and the plane.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch.nn import grad as torch_grad

from ...errors import NotSupported
from ...inputs import dtype_of
from ...op import Op
from .by_cpp import call
from .by_cuda import block_each, linear_grid


def reference(x, k, bias):
    return F.conv2d(x, k, bias, padding=1)


def inputs(make, batch, channels, out, h, w, dtype):
    # As initialised: so outputs are near 1 whatever the size.
    near = max(1, 9 * channels) ** -0.5
    return (
        make.normal(batch, channels, h, w, dtype=dtype),
        make.normal(out, channels, 3, 3, dtype=dtype, std=near),
        make.normal(out, dtype=dtype, std=near),
    )


def multiplications(batch, channels, out, h, w):
    return 9 * batch * channels * out * h * w


def elements(batch, channels, out, h, w):
    return batch * (channels + out) * h * w + (9 * channels + 1) * out


conv2d: Op = Op(
    "conv2d",
    reference,
    inputs,
    flops=lambda **case: 2 * multiplications(**{n: v for n, v in case.items() if n != "dtype"}),
    bytes=lambda dtype, **case: elements(**case) * dtype_of(dtype).itemsize,
    # A border of zeros that is multiplied makes NaN of them, one that is skipped does not; large
    # terms overflow in one order of a sum, not in another.
    supports=lambda channels: channels > 0 or "no channel to convolve",
    excludes=("x:huge", "k:nan", "k:inf", "k:masked", "k:huge"),
    cases=[
        dict(batch=2, channels=1, out=2, h=5, w=7, dtype="float32"),
        dict(batch=3, channels=3, out=9, h=6, w=5, dtype="float64"),
        dict(batch=5, channels=1, out=16, h=28, w=28, dtype="float32"),  # the first block
        dict(batch=5, channels=16, out=32, h=14, w=14, dtype="float32"),  # the second
    ],
)


def formula(dy, x, k):
    dx = torch_grad.conv2d_input(x.shape, k, dy, padding=1)
    dk = torch_grad.conv2d_weight(x, k.shape, dy, padding=1)
    return dx, dk, dy.sum((0, 2, 3))


conv2d_grad = conv2d.gradient(
    formula,
    saves=("x", "k"),
    wrt=("x", "k", "bias"),
    excludes=("x:nan", "x:inf", "x:masked", "dy:nan", "dy:inf", "dy:masked", "dy:huge"),
    flops=lambda **case: 4 * multiplications(**{n: v for n, v in case.items() if n != "dtype"}),
)


def sizes_of(x, k):
    batch, channels, h, w = x.shape
    return batch, channels, k.shape[0], h, w


def refuse_none(x):
    if not x.shape[1]:
        raise NotSupported("no channel to convolve")


@conv2d.launcher("cpp", source="layers.cpp")
def by_cpp(lib, y, x, k, bias):
    refuse_none(x)
    call(lib, "conv2d", y, x, k, bias, *sizes_of(x, k), dtype=x.dtype)


@conv2d_grad.launcher("cpp", source="layers.cpp")
def gradient_by_cpp(lib, dx, dk, dbias, dy, x, k):
    refuse_none(x)
    call(lib, "conv2d_grad", dx, dk, dbias, dy, x, k, *sizes_of(x, k), dtype=x.dtype)


@conv2d.launcher("cuda/naive", source="naive.cu")
def by_cuda(lib, y, x, k, bias):
    if y.numel():
        lib[f"conv2d<{lib.type(x)}>"](**linear_grid(y))(y, x, k, bias, *sizes_of(x, k))


@conv2d_grad.launcher("cuda/naive", source="naive.cu")
def gradient_by_cuda(lib, dx, dk, dbias, dy, x, k):
    kind, sizes = lib.type(x), sizes_of(x, k)
    if dx.numel():
        lib[f"conv2d_grad_input<{kind}>"](**linear_grid(dx))(dx, dy, k, *sizes)
    if dk.numel():
        lib[f"conv2d_grad_weights<{kind}>"](**block_each(dk.numel()))(dk, dy, x, *sizes)
    if dbias.numel():
        batch, _, out, h, w = sizes
        lib[f"channel_sum<{kind}>"](**block_each(out))(dbias, dy, batch, out, h * w)
