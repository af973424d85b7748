"""maxpool2d and avgpool2d: the largest or the mean of each k x k window of an image, windows apart.

x is (batch, channels, h, w), y (batch, channels, h // k, w // k): rows and columns that fill no
window are left out. Gradients: the largest of a window (the first, if several are) gets all of its
dy, or each of the k^2 an equal part; what is in no window gets 0. That of maxpool2d finds the
largest again in x, which is read anyway where no indices were kept.
"""

import torch
import torch.nn.functional as F

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import blocks

CASES = [
    dict(b=1, c=1, h=2, w=2, k=2, dtype="float32"),
    dict(b=2, c=3, h=9, w=13, k=2, dtype="float16"),
    dict(b=2, c=3, h=12, w=11, k=3, dtype="float64"),
    dict(b=2, c=4, h=28, w=32, k=2, dtype="float32"),
    dict(b=2, c=4, h=28, w=32, k=2, dtype="bfloat16"),
    dict(b=64, c=32, h=56, w=56, k=2, dtype="float32"),
    dict(b=64, c=32, h=56, w=56, k=2, dtype="bfloat16"),
]


def inputs(make, b, c, h, w, k, dtype):
    return make.normal(b, c, h, w, dtype=dtype), k


def supports(c, h, w, k):
    if min(h, w) < max(k, 1):
        return "an image has at least one window"
    return c > 0 or "PyTorch's own takes no tensor without channels"


def largest(x, k):
    return F.max_pool2d(x, k)


def mean(x, k):
    return F.avg_pool2d(x, k)


def slope_of_largest(dy, x, k):
    _, place = F.max_pool2d(x, k, return_indices=True)
    return torch.zeros_like(x).flatten(2).scatter(2, place.flatten(2), dy.flatten(2)).view_as(x)


def slope_of_mean(dy, x, k):
    dx = torch.zeros_like(x)
    spread = (dy / (k * k)).repeat_interleave(k, -2).repeat_interleave(k, -1)
    dx[..., : spread.shape[-2], : spread.shape[-1]] = spread
    return dx


def moved(b, c, h, w, k, dtype):
    return b * c * (h * w + (h // k) * (w // k)) * dtype_of(dtype).itemsize


def moved_back(b, c, h, w, k, dtype):
    return b * c * (2 * h * w + (h // k) * (w // k)) * dtype_of(dtype).itemsize


def work(b, c, h, w, k):
    return b * c * (h // k) * (w // k) * k * k


def pooling(name, reference):
    return Op(
        name,
        reference,
        inputs,
        shapes={"x": "b c h w"},
        flops=work,
        bytes=moved,
        cases=CASES,
        supports=supports,
    )


maxpool2d: Op = pooling("maxpool2d", largest)
avgpool2d: Op = pooling("avgpool2d", mean)
maxpool2d_grad = maxpool2d.gradient(
    slope_of_largest, saves=("x", "k"), wrt="x", flops=work, bytes=moved_back
)
avgpool2d_grad = avgpool2d.gradient(
    slope_of_mean, saves=("x", "k"), wrt="x", flops=work, bytes=moved
)


def launch(k, name, y, x, window):
    """One thread an element of y, the output."""
    h, w = x.shape[2:]
    if y.numel():
        kernel = k[f"{name}<{k.type(x)}>"]
        kernel(grid=blocks(y.numel(), 256), block=256, shared=0)(y, x, y.numel(), h, w, window)


def launch_pairs(k, name, y, x):
    """One thread a vector of 16 bytes of two rows, for windows of 2 x 2."""
    b, c, h, w = x.shape
    if y.numel():
        wide = 8 // x.element_size()  # outputs of a thread
        threads = b * c * (h // 2) * blocks(w // 2, wide)
        kernel = k[f"{name}<{k.type(x)}>"]
        kernel(grid=blocks(threads, 256), block=256, shared=0)(y, x, b * c * (h // 2), h, w)


def two(k):
    return k == 2 or "written for windows of 2 x 2"


@maxpool2d.launcher("cuda/naive", source="pooling.cu")
def max_by_cuda_naive(k, y, x, window):
    launch(k, "maxpool2d_naive", y, x, window)


@maxpool2d.launcher("cuda/vectorised", source="pooling.cu", when=two)
def max_by_cuda_vectorised(k, y, x, window):
    launch_pairs(k, "maxpool2d_vectorised", y, x)


@avgpool2d.launcher("cuda/naive", source="pooling.cu")
def mean_by_cuda_naive(k, y, x, window):
    launch(k, "avgpool2d_naive", y, x, window)


@avgpool2d.launcher("cuda/vectorised", source="pooling.cu", when=two)
def mean_by_cuda_vectorised(k, y, x, window):
    launch_pairs(k, "avgpool2d_vectorised", y, x)


@maxpool2d_grad.launcher("cuda", source="pooling.cu")
def max_gradient_by_cuda(k, dx, dy, x, window):
    h, w = dx.shape[2:]
    if dx.numel():
        kernel = k[f"maxpool2d_grad<{k.type(dx)}>"]
        grid = blocks(dx.numel(), 256)
        kernel(grid=grid, block=256, shared=0)(dx, dy, x, dx.numel(), h, w, window)


@avgpool2d_grad.launcher("cuda", source="pooling.cu")
def mean_gradient_by_cuda(k, dx, dy, x, window):
    h, w = dx.shape[2:]
    if dx.numel():
        kernel = k[f"avgpool2d_grad<{k.type(dx)}>"]
        kernel(grid=blocks(dx.numel(), 256), block=256, shared=0)(dx, dy, dx.numel(), h, w, window)


def launch_triton(y, x, window, largest):
    from .pooling_triton import kernel

    h, w = x.shape[-2:]
    n = y.numel()
    if n:
        kernel[(blocks(n, 256),)](y, x, n, h, w, window, largest, 256)


@maxpool2d.launcher("triton")
def max_by_triton(y, x, window):
    launch_triton(y, x, window, True)


@avgpool2d.launcher("triton")
def mean_by_triton(y, x, window):
    launch_triton(y, x, window, False)


def launch_triton_back(dx, dy, x, window, largest):
    from .pooling_triton import gradient_kernel

    h, w = dx.shape[-2:]
    n = dx.numel()
    if n:
        gradient_kernel[(blocks(n, 256),)](dx, dy, x, n, h, w, window, largest, 256)


@maxpool2d_grad.launcher("triton")
def max_gradient_by_triton(dx, dy, x, window):
    launch_triton_back(dx, dy, x, window, True)


@avgpool2d_grad.launcher("triton")
def mean_gradient_by_triton(dx, dy, x, window):
    launch_triton_back(dx, dy, x, window, False)
