"""batchnorm2d with batch statistics: y = (x - mean) rstd w + b of each channel of (b, c, h, w).

mean and var are those of all batch * h * w values of a channel, rstd = 1 / sqrt(var + 1e-5). With
h = (x - mean) rstd and g = dy w, mean(...) over a channel, the gradients are

    dx = rstd (g - mean(g) - h mean(g h))      dw = sum dy h      db = sum dy

A channel is too long for one block: several blocks each find mean and squares of their part, about
the mean of a few of their values so that no digits cancel, and every block that writes puts the
parts together in one fixed order. So x is read twice, and the gradient reads x and dy twice.
"""

import torch
import torch.nn.functional as F

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import multiprocessors, widened


def reference(x, w, b):
    over, kind = (0, 2, 3), x.dtype
    x, w, b = widened(x, w, b)
    mean = x.mean(over, keepdim=True)
    rstd = ((x - mean).square().mean(over, keepdim=True) + 1e-5).rsqrt()
    return ((x - mean) * rstd * w[:, None, None] + b[:, None, None]).to(kind)


def inputs(make, b, c, h, w, dtype):
    x = make.normal(b, c, h, w, dtype=dtype, mean=0.5)
    return x, make.normal(c, dtype=dtype, mean=1, std=0.2), make.normal(c, dtype=dtype)


def supports(b, h, w):
    return b * h * w > 1 or "one value has no variance"


batchnorm2d: Op = Op(
    "batchnorm2d",
    reference,
    inputs,
    flops=lambda b, c, h, w: 8 * b * c * h * w,
    bytes=lambda b, c, h, w, dtype: (2 * b * c * h * w + 2 * c) * dtype_of(dtype).itemsize,
    supports=supports,
    # Squares that overflow; and PyTorch's own, which multiplies by w before it subtracts.
    excludes=("x:huge", "w:inf"),
    cases=[
        dict(b=2, c=1, h=2, w=2, dtype="float32"),
        dict(b=3, c=5, h=7, w=11, dtype="float16"),
        dict(b=4, c=6, h=14, w=14, dtype="float32"),
        dict(b=4, c=6, h=14, w=14, dtype="bfloat16"),
        dict(b=64, c=32, h=56, w=56, dtype="float32"),
        dict(b=64, c=32, h=56, w=56, dtype="bfloat16"),
    ],
)


def exact(c, dtype):
    if dtype in ("float16", "bfloat16"):
        return "on the CPU PyTorch's own is off by many roundings in 16 bits"
    return c > 0 or "PyTorch's own takes no tensor without channels"


@batchnorm2d.variant("eager/batch_norm", when=exact)
def by_torch(x, w, b):
    """PyTorch's own kernels: the reference spells the formula out, for its sums to be seen."""
    return F.batch_norm(x, None, None, w, b, True, 0.0, 1e-5)


def formula(dy, x, w):
    over, kind = (0, 2, 3), x.dtype
    dy, x, w = widened(dy, x, w)
    mean = x.mean(over, keepdim=True)
    rstd = ((x - mean).square().mean(over, keepdim=True) + 1e-5).rsqrt()
    h, g = (x - mean) * rstd, dy * w[:, None, None]
    dx = rstd * (g - g.mean(over, keepdim=True) - h * (g * h).mean(over, keepdim=True))
    return dx.to(kind), (dy * h).sum(over).to(kind), dy.sum(over).to(kind)


batchnorm2d_grad = batchnorm2d.gradient(
    formula,
    saves=("x", "w"),
    wrt=("x", "w", "b"),
    excludes=("dy:inf", "dy:masked"),  # sums of it are moved to the mean: inf - inf
    flops=lambda b, c, h, w: 15 * b * c * h * w,
    bytes=lambda b, c, h, w, dtype: (3 * b * c * h * w + 3 * c) * dtype_of(dtype).itemsize,
)

BLOCK = 256
EACH = 8
"""Blocks on each multiprocessor at about which a GPU is full."""


def parts_of(x):
    """(rows in the batch, channels, elements of a plane, blocks of a channel)."""
    batch, channels, h, w = x.shape
    return batch, channels, h * w, max(1, min(batch, EACH * multiprocessors(x) // max(1, channels)))


def partial(x, kinds, parts):
    wide = torch.float64 if x.dtype is torch.float64 else torch.float32
    return torch.empty(x.shape[1], parts, kinds, dtype=wide, device=x.device)


@batchnorm2d.launcher("cuda/split", source="batchnorm2d.cu")
def by_cuda(k, y, x, w, b):
    batch, channels, plane, parts = parts_of(x)
    if x.numel():
        kept = partial(x, 3, parts)
        sizes = (batch, channels, plane, parts)
        launch = {"grid": channels * parts, "block": BLOCK, "shared": 0}
        k[f"batchnorm2d_parts<{k.type(x)}, {BLOCK}>"](**launch)(kept, x, *sizes)
        k[f"batchnorm2d_write<{k.type(x)}, {BLOCK}>"](**launch)(y, kept, x, w, b, *sizes)


@batchnorm2d_grad.launcher("cuda/split", source="batchnorm2d.cu")
def gradient_by_cuda(k, dx, dw, db, dy, x, w):
    batch, channels, plane, parts = parts_of(x)
    if x.numel():
        kept = partial(x, 5, parts)
        sizes = (batch, channels, plane, parts)
        launch = {"grid": channels * parts, "block": BLOCK, "shared": 0}
        k[f"batchnorm2d_grad_parts<{k.type(x)}, {BLOCK}>"](**launch)(kept, dy, x, *sizes)
        write = k[f"batchnorm2d_grad_write<{k.type(x)}, {BLOCK}>"]
        write(**launch)(dx, dw, db, kept, dy, x, w, *sizes)
    else:
        dw.zero_()
        db.zero_()


@batchnorm2d.launcher("triton", knobs={"BLOCK": [1024]})
def by_triton(y, x, w, b, BLOCK):
    from .batchnorm2d_triton import kernel

    batch, channels, plane, _ = parts_of(x)
    if x.numel():
        kernel[(channels,)](y, x, w, b, batch, channels, plane, BLOCK, num_warps=8)


@batchnorm2d_grad.launcher("triton", knobs={"BLOCK": [1024]})
def gradient_by_triton(dx, dw, db, dy, x, w, BLOCK):
    from .batchnorm2d_triton import gradient_kernel

    batch, channels, plane, _ = parts_of(x)
    if x.numel():
        gradient_kernel[(channels,)](
            dx, dw, db, dy, x, w, batch, channels, plane, BLOCK, num_warps=8
        )
    else:
        dw.zero_()
        db.zero_()
