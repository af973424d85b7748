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

from assay.op import Op

from ..images import gradient, norm
from ..launching import accumulator, multiprocessors

OVER = (0, 2, 3)


def supports(b, h, w):
    return b * h * w > 1 or "one value has no variance"


batchnorm2d: Op = norm("batchnorm2d", OVER, supports)


def exact(c, dtype):
    if dtype in ("float16", "bfloat16"):
        return "on the CPU PyTorch's own is off by many roundings in 16 bits"
    return c > 0 or "PyTorch's own takes no tensor without channels"


@batchnorm2d.variant("eager/batch_norm", when=exact)
def by_torch(x, w, b):
    """PyTorch's own kernels: the reference spells the formula out, for its sums to be seen."""
    return F.batch_norm(x, None, None, w, b, True, 0.0, 1e-5)


batchnorm2d_grad = gradient(batchnorm2d, OVER)

BLOCK = 256
EACH = 8
"""Blocks on each multiprocessor at about which a GPU is full."""


def parts_of(x):
    """(rows in the batch, channels, elements of a plane, blocks of a channel)."""
    batch, channels, h, w = x.shape
    return batch, channels, h * w, max(1, min(batch, EACH * multiprocessors(x) // max(1, channels)))


def partial(x, kinds, parts):
    return torch.empty(x.shape[1], parts, kinds, dtype=accumulator(x), device=x.device)


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
