"""maxpool2d, 2x2 with stride 2: the largest of each window; an odd last row or column is left out.

The gradient goes to the largest value. Ties go to the first in row-major order, and a NaN counts as
larger than anything, as in PyTorch.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ...inputs import dtype_of
from ...op import Op
from .by_cpp import call
from .by_cuda import linear_grid


def reference(x):
    return F.max_pool2d(x, 2)


def inputs(make, planes, h, w, dtype):
    # Half of it zeros, as after a relu: windows in which several values tie.
    return (make.normal(planes, 1, h, w, dtype=dtype).relu(),)


maxpool2d: Op = Op(
    "maxpool2d",
    reference,
    inputs,
    flops=lambda planes, h, w: 3 * planes * (h // 2) * (w // 2),
    bytes=lambda planes, h, w, dtype: (
        planes * (h * w + (h // 2) * (w // 2)) * dtype_of(dtype).itemsize
    ),
    supports=lambda h, w: (h > 1 and w > 1) or "a window of 2x2 does not fit",
    cases=[
        dict(planes=3, h=4, w=6, dtype="float32"),
        dict(planes=5, h=7, w=9, dtype="float64"),
        dict(planes=32, h=28, w=28, dtype="float32"),
        dict(planes=64, h=14, w=14, dtype="float32"),
    ],
)


def formula(dy, x):
    chosen = F.max_pool2d(x, 2, return_indices=True)[1]
    dx = torch.zeros_like(x).flatten(-2)
    return dx.scatter(-1, chosen.flatten(-2), dy.flatten(-2)).view_as(x)


maxpool2d_grad = maxpool2d.gradient(
    formula,
    saves="x",
    wrt="x",
    flops=lambda planes, h, w: 3 * planes * (h // 2) * (w // 2),
)


def sizes_of(x):
    *planes, h, w = x.shape
    return planes[0] * planes[1], h, w


@maxpool2d.launcher("cpp", source="layers.cpp")
def by_cpp(lib, y, x):
    call(lib, "maxpool2d", y, x, *sizes_of(x), dtype=x.dtype)


@maxpool2d_grad.launcher("cpp", source="layers.cpp")
def gradient_by_cpp(lib, dx, dy, x):
    call(lib, "maxpool2d_grad", dx, dy, x, *sizes_of(x), dtype=x.dtype)


@maxpool2d.launcher("cuda/naive", source="naive.cu")
def by_cuda(lib, y, x):
    if y.numel():
        lib[f"maxpool2d<{lib.type(x)}>"](**linear_grid(y))(y, x, *sizes_of(x))


@maxpool2d_grad.launcher("cuda/naive", source="naive.cu")
def gradient_by_cuda(lib, dx, dy, x):
    if dx.numel():
        lib[f"maxpool2d_grad<{lib.type(x)}>"](**linear_grid(dx))(dx, dy, x, *sizes_of(x))
