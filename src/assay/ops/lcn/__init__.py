"""lcn, local contrast norm of each plane of (b, c, h, w): y = v / max(least, sigma).

v = x - mean(x) is x without the mean of its size x size window, and sigma = sqrt(mean(v^2)) the
deviation of the window of v. Means are over the pixels of a window that lie in the image, all of
one weight (Jarrett et al. 2009, section 3, has Gaussian weights and takes the mean of sigma for
least). cuDNN's divisive normalization is the second half, x / max(least, sigma); the first is left
to a pooling before it.

An element of y depends on 2 size - 1 rows of x. So either all of v is kept in memory between two
kernels, or a block works v out again for its neighbours' pixels round its own.
"""

import torch
import torch.nn.functional as F

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import accumulator, blocks, widened

LEAST = dict(least=0.01)


def neighbours(x, size):
    """The sum over the window round each pixel; beyond the image are zeros."""
    half = size // 2
    padded = F.pad(x, (half, half, half, half))
    return padded.unfold(2, size, 1).unfold(3, size, 1).sum((-1, -2))


def reference(x, size, least):
    kind = x.dtype
    (x,) = widened(x)
    count = neighbours(x.new_ones(1, 1, *x.shape[2:]), size)
    v = x - neighbours(x, size) / count
    sigma = (neighbours(v * v, size) / count).sqrt()
    return (v / sigma.clamp(min=least)).to(kind)


def inputs(make, b, c, h, w, size, least, dtype):
    return make.normal(b, c, h, w, dtype=dtype, mean=0.5), size, least


def supports(h, w, size):
    if size < 1 or size % 2 == 0:
        return "a window has a pixel in its middle"
    return h * w > 0 or "an image has at least one pixel"


lcn: Op = Op(
    "lcn",
    reference,
    inputs,
    shapes={"x": "b c h w"},
    flops=lambda b, c, h, w, size: b * c * h * w * (3 * size * size + 6),
    bytes=lambda b, c, h, w, dtype: 2 * b * c * h * w * dtype_of(dtype).itemsize,
    supports=supports,
    excludes=("x:huge",),  # squares that overflow
    cases=[
        dict(b=1, c=1, h=3, w=4, size=3, **LEAST, dtype="float32"),
        dict(b=2, c=3, h=9, w=13, size=9, **LEAST, dtype="float16"),
        dict(b=2, c=3, h=19, w=36, size=5, **LEAST, dtype="float32"),
        dict(b=2, c=3, h=19, w=36, size=5, **LEAST, dtype="bfloat16"),
        dict(b=32, c=16, h=64, w=64, size=5, **LEAST, dtype="float32"),
        dict(b=32, c=16, h=64, w=64, size=5, **LEAST, dtype="bfloat16"),
    ],
)


def formula(dy, x, size, least):
    """Through v and sigma. A sum over windows is its own adjoint, since a window is symmetric.

    With r = 1 / max(least, sigma): y = v r, dsigma = -dy v r^2 where sigma is above least, and
    dv = dy r + v box(dsigma / (sigma count)); of v = x - box(x) / count, dx = dv - box(dv / count).
    """
    kind, (dy, x) = x.dtype, widened(dy, x)
    count = neighbours(x.new_ones(1, 1, *x.shape[2:]), size)
    v = x - neighbours(x, size) / count
    sigma = (neighbours(v * v, size) / count).sqrt()
    r, above = 1 / sigma.clamp(min=least), sigma > least
    of_sigma = torch.where(above, -dy * v * r * r / torch.where(above, sigma, 1), 0)
    dv = dy * r + v * neighbours(of_sigma / count, size)
    return (dv - neighbours(dv / count, size)).to(kind)


lcn_grad = lcn.gradient(formula, saves=("x", "size", "least"), wrt="x")

BLOCK = 256
ROWS, COLUMNS = 8, 32
"""The pixels of a block of cuda/tiled."""
MOST = 15
"""Its widest window: x and v of 36 x 60 pixels are 17 KB of shared memory, in float64 35 KB."""


def small(size):
    return 0 < size <= MOST or f"written for windows of at most {MOST} x {MOST}"


def centred(x):
    """v of each pixel, in the dtype that is computed in."""
    return torch.empty(x.shape, dtype=accumulator(x), device=x.device)


@lcn.launcher("cuda/tiled", source="lcn.cu", when=small)
def by_cuda_tiled(k, y, x, size, least):
    if x.numel():
        b, c, h, w = x.shape
        half = size // 2
        wide = accumulator(x).itemsize
        of_x = (ROWS + 4 * half) * (COLUMNS + 4 * half)
        of_v = (ROWS + 2 * half) * (COLUMNS + 2 * half)
        tiles = blocks(h, ROWS) * blocks(w, COLUMNS)
        kernel = k[f"lcn_tiled<{k.type(x)}, {ROWS}, {COLUMNS}>"]
        launch = {"grid": b * c * tiles, "block": ROWS * COLUMNS, "shared": (of_x + of_v) * wide}
        kernel(**launch)(y, x, h, w, size, least)


@lcn.launcher("cuda/two_passes", source="lcn.cu")
def by_cuda_twice(k, y, x, size, least):
    if n := x.numel():
        v, kind, image = centred(x), k.type(x), (n, *x.shape[2:], size)
        launch = {"grid": blocks(n, BLOCK), "block": BLOCK, "shared": 0}
        k[f"lcn_centre<{kind}>"](**launch)(v, x, *image)
        k[f"lcn_divide<{kind}>"](**launch)(y, v, *image, least)


@lcn.launcher("triton", knobs={"BLOCK": [256]})
def by_triton(y, x, size, least, BLOCK):
    from .lcn_triton import centre_kernel, divide_kernel

    if n := x.numel():
        v, grid, image = centred(x), (blocks(n, BLOCK),), (n, *x.shape[2:], size)
        centre_kernel[grid](v, x, *image, BLOCK)
        divide_kernel[grid](y, v, *image, least, BLOCK)
