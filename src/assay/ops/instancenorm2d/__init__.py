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

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import blocks, widened


def reference(x, w, b):
    over, kind = (2, 3), x.dtype
    x, w, b = widened(x, w, b)
    mean = x.mean(over, keepdim=True)
    rstd = ((x - mean).square().mean(over, keepdim=True) + 1e-5).rsqrt()
    return ((x - mean) * rstd * w[:, None, None] + b[:, None, None]).to(kind)


def inputs(make, b, c, h, w, dtype):
    x = make.normal(b, c, h, w, dtype=dtype, mean=0.5)
    return x, make.normal(c, dtype=dtype, mean=1, std=0.2), make.normal(c, dtype=dtype)


def supports(h, w):
    return h * w > 1 or "one value has no variance"


instancenorm2d: Op = Op(
    "instancenorm2d",
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


def exact(b, c, dtype):
    if dtype in ("float16", "bfloat16"):
        return "on the CPU PyTorch's own is off by many roundings in 16 bits"
    return b * c > 0 or "PyTorch's own takes no tensor without images or channels"


@instancenorm2d.variant("eager/instance_norm", when=exact)
def by_torch(x, w, b):
    """PyTorch's own kernels: the reference spells the formula out, for its sums to be seen."""
    return F.instance_norm(x, weight=w, bias=b, eps=1e-5)


def formula(dy, x, w):
    over, kind = (2, 3), x.dtype
    dy, x, w = widened(dy, x, w)
    mean = x.mean(over, keepdim=True)
    rstd = ((x - mean).square().mean(over, keepdim=True) + 1e-5).rsqrt()
    h, g = (x - mean) * rstd, dy * w[:, None, None]
    dx = rstd * (g - g.mean(over, keepdim=True) - h * (g * h).mean(over, keepdim=True))
    return dx.to(kind), (dy * h).sum((0, 2, 3)).to(kind), dy.sum((0, 2, 3)).to(kind)


instancenorm2d_grad = instancenorm2d.gradient(
    formula,
    saves=("x", "w"),
    wrt=("x", "w", "b"),
    excludes=("dy:inf", "dy:masked"),  # sums of it are moved to the mean: inf - inf
    flops=lambda b, c, h, w: 15 * b * c * h * w,
    bytes=lambda b, c, h, w, dtype: (3 * b * c * h * w + 3 * c) * dtype_of(dtype).itemsize,
)

BLOCK = 256


def sums_of(x):
    """Of each plane: sum dy h and sum dy."""
    wide = torch.float64 if x.dtype is torch.float64 else torch.float32
    return torch.empty(x.shape[0], x.shape[1], 2, dtype=wide, device=x.device)


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
