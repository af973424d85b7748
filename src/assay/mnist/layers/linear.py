"""linear: y = x w^T + b; its gradients are dx = dy w, dw = dy^T x, db = the sum over the rows."""

from __future__ import annotations

import torch.nn.functional as F

from ...inputs import dtype_of
from ...op import Op
from .by_cpp import call
from .by_cuda import linear_grid


def reference(x, w, b):
    return F.linear(x, w, b)


def inputs(make, rows, features, out, dtype):
    near = max(1, features) ** -0.5
    return (
        make.normal(rows, features, dtype=dtype),
        make.normal(out, features, dtype=dtype, std=near),
        make.normal(out, dtype=dtype, std=near),
    )


linear: Op = Op(
    "linear",
    reference,
    inputs,
    flops=lambda rows, features, out: 2 * rows * features * out,
    bytes=lambda rows, features, out, dtype: (
        (rows * (features + out) + (features + 1) * out) * dtype_of(dtype).itemsize
    ),
    # Large terms overflow in one order of a sum, not in another.
    excludes=("x:huge", "w:huge"),
    cases=[
        dict(rows=3, features=5, out=2, dtype="float32"),
        dict(rows=17, features=70, out=33, dtype="float64"),
        dict(rows=24, features=1568, out=128, dtype="float32"),
        dict(rows=64, features=128, out=10, dtype="float32"),
    ],
)


def formula(dy, x, w):
    return dy @ w, dy.T @ x, dy.sum(0)


linear_grad = linear.gradient(
    formula,
    saves=("x", "w"),
    wrt=("x", "w", "b"),
    excludes="dy:huge",
    flops=lambda rows, features, out: 4 * rows * features * out,
)


def sizes_of(x, w):
    return x.shape[0], x.shape[1], w.shape[0]


@linear.launcher("cpp", source="layers.cpp")
def by_cpp(lib, y, x, w, b):
    call(lib, "linear", y, x, w, b, *sizes_of(x, w), dtype=x.dtype)


@linear_grad.launcher("cpp", source="layers.cpp")
def gradient_by_cpp(lib, dx, dw, db, dy, x, w):
    call(lib, "linear_grad", dx, dw, db, dy, x, w, *sizes_of(x, w), dtype=x.dtype)


@linear.launcher("cuda/naive", source="naive.cu")
def by_cuda(lib, y, x, w, b):
    if y.numel():
        lib[f"linear<{lib.type(x)}>"](**linear_grid(y))(y, x, w, b, *sizes_of(x, w))


@linear_grad.launcher("cuda/naive", source="naive.cu")
def gradient_by_cuda(lib, dx, dw, db, dy, x, w):
    kind, sizes = lib.type(x), sizes_of(x, w)
    if dx.numel():
        lib[f"linear_grad_input<{kind}>"](**linear_grid(dx))(dx, dy, w, *sizes)
    if dw.numel():
        lib[f"linear_grad_weights<{kind}>"](**linear_grid(dw))(dw, dy, x, *sizes)
    if db.numel():
        lib[f"row_sum<{kind}>"](**linear_grid(db))(db, dy, sizes[0], sizes[2])
