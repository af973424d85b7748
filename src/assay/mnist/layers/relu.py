"""relu: y = max(x, 0), a NaN stays; its gradient is dy where y > 0, else 0, so it saves y alone."""

from __future__ import annotations

import torch

from ...inputs import dtype_of
from ...op import Op
from .by_cpp import call
from .by_cuda import linear_grid


def reference(x):
    return torch.relu(x)


def inputs(make, n, dtype):
    return (make.normal(n, dtype=dtype),)


relu: Op = Op(
    "relu",
    reference,
    inputs,
    flops=lambda n: n,
    bytes=lambda n, dtype: 2 * n * dtype_of(dtype).itemsize,
    cases=[
        dict(n=1000, dtype="float32"),
        dict(n=999, dtype="float64"),
        dict(n=64 * 128, dtype="float32"),
    ],
)


def formula(dy, y):
    return torch.where(y <= 0, torch.zeros_like(dy), dy)


relu_grad = relu.gradient(
    formula,
    saves="y",
    wrt="x",
    flops=lambda n: n,
    bytes=lambda n, dtype: 3 * n * dtype_of(dtype).itemsize,
)


@relu.launcher("cpp", source="layers.cpp")
def by_cpp(lib, y, x):
    call(lib, "relu", y, x, x.numel(), dtype=x.dtype)


@relu_grad.launcher("cpp", source="layers.cpp")
def gradient_by_cpp(lib, dx, dy, y):
    call(lib, "relu_grad", dx, dy, y, y.numel(), dtype=y.dtype)


@relu.launcher("cuda/naive", source="naive.cu")
def by_cuda(lib, y, x):
    if x.numel():
        lib[f"relu<{lib.type(x)}>"](**linear_grid(x))(y, x, x.numel())


@relu_grad.launcher("cuda/naive", source="naive.cu")
def gradient_by_cuda(lib, dx, dy, y):
    if y.numel():
        lib[f"relu_grad<{lib.type(y)}>"](**linear_grid(y))(dx, dy, y, y.numel())
