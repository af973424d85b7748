"""instancenorm2d: y = (x - mean) rstd w + b of each plane of (b, c, h, w).

mean and var are those of the h * w values of one channel of one image, rstd = 1 / sqrt(var + 1e-5):
batchnorm2d whose batches are single images, or layernorm whose rows are planes, with a weight for
each row's channel instead of each column. With h = (x - mean) rstd and g = dy w, mean(...) over a
plane, the gradients are

    dx = rstd (g - mean(g) - h mean(g h))      dw = sum dy h      db = sum dy      (over b, h, w)

A block has a plane. The gradient keeps each plane's two sums, which are then added over the images
of a channel in one fixed order.
"""

import torch
import torch.nn.functional as F

from assay.op import Op

from ..images import gradient, norm
from ..launching import accumulator, blocks

OVER = (2, 3)


def supports(h, w):
    return h * w > 1 or "one value has no variance"


instancenorm2d: Op = norm("instancenorm2d", OVER, supports)


def exact(b, c, dtype):
    if dtype in ("float16", "bfloat16"):
        return "on the CPU PyTorch's own is off by many roundings in 16 bits"
    return b * c > 0 or "PyTorch's own takes no tensor without images or channels"


@instancenorm2d.variant("eager/instance_norm", when=exact)
def by_torch(x, w, b):
    """PyTorch's own kernels: the reference spells the formula out, for its sums to be seen."""
    return F.instance_norm(x, weight=w, bias=b, eps=1e-5)


instancenorm2d_grad = gradient(instancenorm2d, OVER)

BLOCK = 256


def sums_of(x):
    """Of each plane: sum dy h and sum dy."""
    return torch.empty(x.shape[0], x.shape[1], 2, dtype=accumulator(x), device=x.device)


@instancenorm2d.launcher("cuda", source="instancenorm2d.cu")
def by_cuda(k, y, x, w, b):
    batch, channels, height, width = x.shape
    if x.numel():
        built = k[f"instancenorm2d<{k.type(x)}, {BLOCK}>"]
        built(grid=batch * channels, block=BLOCK, shared=0)(y, x, w, b, channels, height * width)


@instancenorm2d_grad.launcher("cuda", source="instancenorm2d.cu")
def gradient_by_cuda(k, dx, dw, db, dy, x, w):
    batch, channels, height, width = x.shape
    if not x.numel():
        dw.zero_()
        db.zero_()
        return
    kept, kind = sums_of(x), k.type(x)
    own = k[f"instancenorm2d_grad<{kind}, {BLOCK}>"]
    own(grid=batch * channels, block=BLOCK, shared=0)(dx, kept, dy, x, w, channels, height * width)
    add = k[f"instancenorm2d_sums<{kind}>"]
    add(grid=blocks(channels, BLOCK), block=BLOCK, shared=0)(dw, db, kept, batch, channels)


@instancenorm2d.launcher("triton", knobs={"BLOCK": [1024]})
def by_triton(y, x, w, b, BLOCK):
    from .instancenorm2d_triton import kernel

    batch, channels, height, width = x.shape
    if x.numel():
        kernel[(batch * channels,)](y, x, w, b, channels, height * width, BLOCK)


@instancenorm2d_grad.launcher("triton", knobs={"BLOCK": [1024]})
def gradient_by_triton(dx, dw, db, dy, x, w, BLOCK):
    from .instancenorm2d_triton import gradient_kernel, sums_kernel

    batch, channels, height, width = x.shape
    if not x.numel():
        dw.zero_()
        db.zero_()
        return
    kept = sums_of(x)
    gradient_kernel[(batch * channels,)](dx, kept, dy, x, w, channels, height * width, BLOCK)
    sums_kernel[(channels,)](dw, db, kept, batch, channels, 128)
