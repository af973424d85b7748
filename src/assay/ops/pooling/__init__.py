"""maxpool2d and avgpool2d: the largest or the mean of each k x k window of an image, windows apart.

x is (batch, channels, h, w), y (batch, channels, h // k, w // k): rows and columns that fill no
window are left out. Gradients: the largest of a window (the first, if several are) gets all of its
dy, or each of the k^2 an equal part; what is in no window gets 0. That of maxpool2d finds the
largest again in x, which is read anyway where no indices were kept.
"""

import math

import torch
import torch.nn.functional as F

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import blocks, multiprocessors

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


BLOCK = 128
UNROLLED = (2, 3, 4)
"""Sizes of windows that kernels are compiled for."""
LONG = 1 << 31
"""What is counted with 32 bits stays below."""


def small(k):
    return k in UNROLLED or "written for windows of 2 x 2 to 4 x 4"


def geometry(x, k):
    """(bands, pieces of a band, elements of a vector, grid, block) for windows that fill planes.

    A band is the k rows that one row of windows covers, a piece as few vectors as are whole
    windows; the vector is the widest of at most 16 bytes that divides a band. None where windows
    don't fill the planes, or there would be too many bands or too wide a grid.
    """
    b, c, h, w = x.shape
    if k not in UNROLLED or h % k or w % k:
        return None
    vector = 16 // x.element_size()
    while w % math.lcm(k, vector):
        vector //= 2
    bands, pieces = b * c * (h // k), w // math.lcm(k, vector)
    across = blocks(pieces, blocks(pieces, BLOCK))  # equally many in each block
    down = BLOCK // across
    grid = (blocks(bands, down), blocks(pieces, across))
    if bands >= LONG or grid[1] >= 1 << 16:
        return None
    return bands, pieces, vector, grid, (across, down)


def index(n):
    """The C++ type that counts n threads."""
    return "unsigned" if n < LONG else "unsigned long long"


def launch(k, how, y, x, window):
    """One thread an element of y, the output."""
    h, w = x.shape[2:]
    n = y.numel()
    if n:
        kernel = k[f"pool_naive<{how}, {k.type(x)}>"]
        kernel(grid=blocks(n, 256), block=256, shared=0)(y, x, n, h, w, window)


def launch_vectorised(k, how, y, x, window):
    h, w = x.shape[2:]
    n = y.numel()
    if not n:
        return
    if found := geometry(x, window):
        bands, pieces, vector, grid, block = found
        kernel = k[f"pool_vectorised<{how}, {k.type(x)}, {window}, {vector}>"]
        kernel(grid=grid, block=block, shared=0)(y, x, bands, pieces)
    else:
        kernel = k[f"pool_windows<{how}, {k.type(x)}, {window}, {index(n)}>"]
        kernel(grid=blocks(n, BLOCK), block=BLOCK, shared=0)(y, x, n, h, w)


def launch_back(k, name, dx, window, *given):
    """Two bands a thread where that leaves enough threads to fill the GPU."""
    b, c, h, w = dx.shape
    if not dx.numel():
        return
    if found := geometry(dx, window):
        bands, pieces, vector, (down, across), block = found
        each = 2 if window == 2 and bands * pieces >= 4096 * multiprocessors(dx) else 1
        kernel = k[f"{name}<{k.type(dx)}, {window}, {vector}, {each}>"]
        kernel(grid=(blocks(down, each), across), block=block, shared=0)(dx, *given, bands, pieces)
    else:
        n = b * c * blocks(h, window) * w
        side = window if window in UNROLLED else 0
        kernel = k[f"{name}_columns<{k.type(dx)}, {side}, {index(n)}>"]
        kernel(grid=blocks(n, BLOCK), block=BLOCK, shared=0)(dx, *given, n, h, w, window)


@maxpool2d.launcher("cuda/naive", source="pooling.cu")
def max_by_cuda_naive(k, y, x, window):
    launch(k, "Largest", y, x, window)


@maxpool2d.launcher("cuda/vectorised", source="pooling.cu", when=small)
def max_by_cuda_vectorised(k, y, x, window):
    launch_vectorised(k, "Largest", y, x, window)


@avgpool2d.launcher("cuda/naive", source="pooling.cu")
def mean_by_cuda_naive(k, y, x, window):
    launch(k, "Mean", y, x, window)


@avgpool2d.launcher("cuda/vectorised", source="pooling.cu", when=small)
def mean_by_cuda_vectorised(k, y, x, window):
    launch_vectorised(k, "Mean", y, x, window)


@maxpool2d_grad.launcher("cuda", source="pooling_grad.cu")
def max_gradient_by_cuda(k, dx, dy, x, window):
    launch_back(k, "maxpool2d_grad", dx, window, dy, x)


@avgpool2d_grad.launcher("cuda", source="pooling_grad.cu")
def mean_gradient_by_cuda(k, dx, dy, x, window):
    launch_back(k, "avgpool2d_grad", dx, window, dy)


def tiles(n, rows, size):
    """(rows, columns, tiles across, programs) that cover n columns of so many rows by tiles of
    `size` elements: of the widths up to 256 the one that has fewest columns to spare."""
    widths = [1 << j for j in range(4, 9)] if n >= 16 else [1 << (n - 1).bit_length()]
    columns = min(widths, key=lambda width: (blocks(n, width) * width, -width))
    across = blocks(n, columns)
    return size // columns, columns, across, across * blocks(rows, size // columns)


def launch_triton(kernel, made, given, shape, window, largest, rows, lanes):
    """rows: how many rows of windows. lanes: columns across, of windows or of elements."""
    h, w = shape
    across = w // window
    unit = min(16, across & -across)  # a power of two that divides it
    # For k = 2 each thread has a vector of 16 bytes of a row of x, which is half as many windows.
    size = BLOCK * max(1, 8 // made.element_size())
    high, wide, over, programs = tiles(lanes, rows, size)
    sizes = (rows, h, across // unit, w % window, over)
    long = max(rows * window + h, window * w) >= LONG
    kernel[(programs,)](
        made, *given, *sizes, window, largest, h % window == 0, unit, long, high, wide
    )


def launch_triton_forward(y, x, window, largest):
    from .pooling_triton import kernel

    b, c, h, w = x.shape
    if y.numel():
        rows = b * c * (h // window)
        launch_triton(kernel, y, (x,), (h, w), window, largest, rows, w // window)


@maxpool2d.launcher("triton")
def max_by_triton(y, x, window):
    launch_triton_forward(y, x, window, True)


@avgpool2d.launcher("triton")
def mean_by_triton(y, x, window):
    launch_triton_forward(y, x, window, False)


def launch_triton_back(dx, dy, x, window, largest):
    from .pooling_grad_triton import kernel

    b, c, h, w = dx.shape
    if dx.numel():
        rows, lanes = b * c * blocks(h, window), blocks(w, 2) if window == 2 else w
        launch_triton(kernel, dx, (dy, x), (h, w), window, largest, rows, lanes)


@maxpool2d_grad.launcher("triton")
def max_gradient_by_triton(dx, dy, x, window):
    launch_triton_back(dx, dy, x, window, True)


@avgpool2d_grad.launcher("triton")
def mean_gradient_by_triton(dx, dy, x, window):
    launch_triton_back(dx, dy, x, window, False)
