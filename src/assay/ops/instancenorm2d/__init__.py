"""instancenorm2d: y = (x - mean) rstd w + b of each plane of (b, c, h, w).

mean and var are those of the h * w values of one channel of one image, rstd = 1 / sqrt(var + 1e-5):
batchnorm2d whose batches are single images, or layernorm whose rows are planes, with a weight for
each row's channel instead of each column. With h = (x - mean) rstd and g = dy w, mean(...) over a
plane, the gradients are

    dx = rstd (g - mean(g) - h mean(g h))      dw = sum dy h      db = sum dy      (over b, h, w)

A plane lies in the registers of a warp or a block, and is read once. The gradient keeps each
plane's two sums, which are then added over the images of a channel in one fixed order.
"""

import torch
import torch.nn.functional as F

from assay.op import Op

from ..images import gradient, norm
from ..launching import accumulator, blocks
from ..rows import MOST_COLUMNS, by_tiles, held, launch_held

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
MOST, WIDEST = (32, 16), (1024, 512)
"""Elements that a thread holds, and threads of a plane; of the gradient, which holds as many of dy
beside them."""
CROWD = 1024
"""Threads of a multiprocessor, up to which small planes get more: each costs some 100 instructions,
however few its elements."""


def sums_of(x):
    """Of each plane: sum dy h and sum dy."""
    return torch.empty(x.shape[0], x.shape[1], 2, dtype=accumulator(x), device=x.device)


def by_planes(k, name, x, tensors, back=False):
    """Launches `<name>_held` where a plane fits registers, else `<name>_walked`."""
    batch, channels, height, width = x.shape
    planes, n, size = batch * channels, height * width, x.element_size()
    most = MOST[back]
    chosen = held(n, size, most, WIDEST[back], alone=most * size // 16)
    if chosen is None or planes >= 2**31:
        built = k[f"{name}_walked<{k.type(x)}, {BLOCK}>"]
        built(grid=planes, block=BLOCK, shared=0)(*tensors, channels, n)
        return
    launch = launch_held(k, name, x, planes, n, chosen, CROWD)
    launch(*tensors, planes, channels, n)


@instancenorm2d.launcher("cuda", source="instancenorm2d.cu")
def by_cuda(k, y, x, w, b):
    if x.numel():
        by_planes(k, "instancenorm2d", x, (y, x, w, b))


@instancenorm2d_grad.launcher("cuda", source="instancenorm2d.cu")
def gradient_by_cuda(k, dx, dw, db, dy, x, w):
    batch, channels = x.shape[:2]
    if not x.numel():
        dw.zero_()
        db.zero_()
        return
    kept = sums_of(x)
    by_planes(k, "instancenorm2d_grad", x, (dx, kept, dy, x, w), back=True)
    add = k[f"instancenorm2d_sums<{k.type(x)}, {BLOCK}>"]
    launch = add(grid=blocks(channels, BLOCK // 32), block=BLOCK, shared=0, early=True)
    launch(dw, db, kept, batch, channels)


@instancenorm2d.launcher("triton", knobs={"BLOCK": [1024]})
def by_triton(y, x, w, b, BLOCK):
    from .instancenorm2d_triton import held_kernel, kernel

    batch, channels, height, width = x.shape
    planes, n = batch * channels, height * width
    if n > MOST_COLUMNS:
        kernel[(planes,)](y, x, w, b, channels, n, BLOCK)
    elif x.numel():
        by_tiles(held_kernel, planes, n, (y, x, w, b, channels))


@instancenorm2d_grad.launcher("triton", knobs={"BLOCK": [1024]})
def gradient_by_triton(dx, dw, db, dy, x, w, BLOCK):
    from .instancenorm2d_triton import gradient_kernel, held_gradient_kernel, sums_kernel

    batch, channels, height, width = x.shape
    planes, n = batch * channels, height * width
    if not x.numel():
        dw.zero_()
        db.zero_()
        return
    kept = sums_of(x)
    given = (dx, kept, dy, x, w, channels)
    if n > MOST_COLUMNS // 2:  # of x and of dy
        gradient_kernel[(planes,)](*given, n, BLOCK)
    else:
        by_tiles(held_gradient_kernel, planes, n, given, each=8)
    sums_kernel[(channels,)](dw, db, kept, batch, channels, 128)
