"""lrn, local response norm across channels: y = x B^-beta, B = k + alpha / size sum x^2.

The sum goes over `size` neighbouring channels of the same pixel, from size // 2 before to
(size - 1) // 2 after; beyond the first and the last channel x counts as 0 (Krizhevsky et al. 2012,
section 3.3; torch.nn.LocalResponseNorm). With a = alpha / size the gradient is

    dx_j = dy_j B_j^-beta - 2 a beta x_j sum of dy_i x_i B_i^(-beta - 1)

over the channels i whose windows hold j: from (size - 1) // 2 before to size // 2 after.
"""

import math

import torch
import torch.nn.functional as F

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import accumulator, blocks, widened
from ..rows import power

SHARP = dict(alpha=1.0, beta=0.75, k=2.0)
"""With the usual alpha of 1e-4 y would be x k^-beta, give or take a thousandth."""


def neighbours(x, before, after):
    """The sums of `before` channels before to `after` channels after each."""
    padded = F.pad(x, (0, 0, 0, 0, before, after))
    return padded.unfold(1, before + after + 1, 1).sum(-1)


def reference(x, size, alpha, beta, k):
    kind = x.dtype
    (x,) = widened(x)
    total = neighbours(x * x, size // 2, (size - 1) // 2)
    return (x * (k + alpha / size * total) ** -beta).to(kind)


def inputs(make, b, c, h, w, size, alpha, beta, k, dtype):
    return make.normal(b, c, h, w, dtype=dtype), size, alpha, beta, k


def supports(c, size):
    return (c > 0 and size > 0) or "a window has at least one channel"


lrn: Op = Op(
    "lrn",
    reference,
    inputs,
    shapes={"x": "b c h w"},
    flops=lambda b, c, h, w, size: b * c * h * w * (2 * size + 4),
    bytes=lambda b, c, h, w, dtype: 2 * b * c * h * w * dtype_of(dtype).itemsize,
    supports=supports,
    excludes=("x:huge",),  # squares that overflow
    cases=[
        dict(b=1, c=1, h=2, w=2, size=5, **SHARP, dtype="float32"),
        dict(b=2, c=7, h=5, w=6, size=4, **SHARP, dtype="float16"),
        dict(b=2, c=7, h=9, w=9, size=5, **SHARP, dtype="float32"),
        dict(b=2, c=7, h=9, w=9, size=5, **SHARP, dtype="bfloat16"),
        dict(b=2, c=20, h=6, w=6, size=5, **SHARP, dtype="float32"),
        dict(b=2, c=20, h=6, w=6, size=3, alpha=1.0, beta=0.7, k=2.0, dtype="float16"),
        dict(b=32, c=96, h=27, w=27, size=5, **SHARP, dtype="float32"),
        dict(b=32, c=96, h=27, w=27, size=5, **SHARP, dtype="bfloat16"),
    ],
)


def exact(dtype):
    return dtype not in ("float16", "bfloat16") or "PyTorch's own rounds each step to 16 bits"


@lrn.variant("eager/local_response_norm", when=exact)
def by_torch(x, size, alpha, beta, k):
    """PyTorch's own: a mean over three dimensions of a tensor made for it."""
    return F.local_response_norm(x, size, alpha, beta, k)


def formula(dy, x, size, alpha, beta, k):
    kind = x.dtype
    dy, x = widened(dy, x)
    base = k + alpha / size * neighbours(x * x, size // 2, (size - 1) // 2)
    others = neighbours(dy * x * base ** (-beta - 1), (size - 1) // 2, size // 2)
    return (dy * base**-beta - 2 * alpha / size * beta * x * others).to(kind)


lrn_grad = lrn.gradient(
    formula,
    saves=("x", "size", "alpha", "beta", "k"),
    wrt="x",
    flops=lambda b, c, h, w, size: b * c * h * w * (3 * size + 12),
    bytes=lambda b, c, h, w, dtype: 3 * b * c * h * w * dtype_of(dtype).itemsize,
)

BLOCK = 256
CHANNELS = 8
"""Of a strip, as in lrn.cu: neighbouring strips read size - 1 channels both."""
MOST = 9
"""Channels of a window that a thread keeps in registers."""
WIDTH, WIDTH_BACK = 4, 2
"""Neighbouring pixels that a thread has at most; the gradient holds more than twice as many numbers
of each."""
ANY = -1


def few(size):
    return 0 < size <= MOST or f"written for windows of at most {MOST} channels"


def plane_of(x):
    """(channels, elements of a plane)."""
    return x.shape[1], x.shape[2] * x.shape[3]


def quarters_of(beta):
    """4 beta, if that is a whole number up to 4: such powers are made of roots. Else ANY."""
    return int(4 * beta) if 4 * beta in range(5) else ANY


def in_strips(k, name, x, tensors, size, alpha, beta, add, width):
    """Launches `name`, a thread a strip of at most `width` pixels."""
    channels, plane = plane_of(x)
    quarters = quarters_of(beta)
    # Of any power in float32 there had better not be 32 copies in a kernel.
    most = min(width, 16 // x.element_size()) if quarters != ANY or x.element_size() == 2 else 1
    width = math.gcd(plane, most)
    strips, vectors = blocks(channels, CHANNELS), plane // width
    tiles = blocks(vectors, BLOCK // min(strips, 8))
    across = blocks(vectors, tiles)
    groups = blocks(strips, BLOCK // across)
    kernel = k[f"{name}<{k.type(x)}, {size}, {width}, {quarters}>"]
    launch = {"grid": x.shape[0] * tiles * groups, "block": (across, blocks(strips, groups))}
    kernel(**launch, shared=0)(*tensors, channels, plane, tiles, groups, alpha / size, beta, add)


@lrn.launcher("cuda/naive", source="lrn.cu")
def by_cuda_naive(k, y, x, size, alpha, beta, add):
    if n := x.numel():
        kernel = k[f"lrn_naive<{k.type(x)}>"]
        launch = {"grid": blocks(n, BLOCK), "block": BLOCK, "shared": 0}
        kernel(**launch)(y, x, n, *plane_of(x), size, alpha / size, beta, add)


@lrn.launcher("cuda/walked", source="lrn.cu", when=few)
def by_cuda_walked(k, y, x, size, alpha, beta, add):
    if x.numel():
        in_strips(k, "lrn_walked", x, (y, x), size, alpha, beta, add, WIDTH)


def kept(x):
    """Of each element: dy x B^(-beta - 1), and B^-beta."""
    return torch.empty(2, x.numel(), dtype=accumulator(x), device=x.device)


@lrn_grad.launcher("cuda", source="lrn.cu")
def gradient_by_cuda(k, dx, dy, x, size, alpha, beta, add):
    n, kind = x.numel(), k.type(x)
    if n and few(size) is True:
        in_strips(k, "lrn_grad_walked", x, (dx, dy, x), size, alpha, beta, add, WIDTH_BACK)
    elif n:
        terms = kept(x)
        launch = {"grid": blocks(n, BLOCK), "block": BLOCK, "shared": 0}
        shape = (n, *plane_of(x), size, alpha / size, beta)
        k[f"lrn_grad_terms<{kind}>"](**launch)(terms, dy, x, *shape, add)
        k[f"lrn_grad<{kind}>"](**launch)(dx, terms, dy, x, *shape)


@lrn.launcher("triton", knobs={"BLOCK": [256]})
def by_triton(y, x, size, alpha, beta, add, BLOCK):
    from .lrn_triton import kernel

    if x.numel():
        grid, shape, tile = in_tiles(x, BLOCK)
        quarters = quarters_of(beta)
        kernel[grid](y, x, *shape, size, alpha, beta, add, quarters, *tile, num_warps=8)


@lrn_grad.launcher("triton", knobs={"BLOCK": [256]})
def gradient_by_triton(dx, dy, x, size, alpha, beta, add, BLOCK):
    from .lrn_triton import gradient_kernel, terms_kernel

    if n := x.numel():
        terms, (grid, shape, tile) = kept(x), in_tiles(x, BLOCK)
        usual = (n, *shape, size, alpha, beta)
        terms_kernel[grid](terms, dy, x, *usual, add, quarters_of(beta), *tile, num_warps=8)
        gradient_kernel[grid](dx, terms, dy, x, *usual, *tile, num_warps=8)


def in_tiles(x, block):
    """Triton's grid; channels, vectors of a plane, pixels of each; channels, pixels of a tile."""
    channels, plane = plane_of(x)
    width = math.gcd(plane, 16 // x.element_size())
    tile = min(8, power(channels)), min(block, power(plane))
    grid = (x.shape[0] * blocks(channels, tile[0]) * blocks(plane, tile[1]),)
    return grid, (channels, plane // width, width), tile
