"""What a step needs beside layers: a batch chosen and normalised, and the update of the weights.

load_batch: x = (images[order] / 255 - 0.1307) / 0.3081 and y = labels[order], from uint8: the whole
set stays where it is, as bytes. sgd_step: w <- w - rate g, no momentum and no schedule.
"""

from __future__ import annotations

from ...inputs import dtype_of
from ...op import Op
from .by_cpp import call
from .by_cuda import linear_grid

MEAN, DEVIATION = 0.1307, 0.3081
"""Of all pixels of the 60,000 training digits, as fractions of 255."""


def loaded(images, labels, order, unit):
    """unit: a 1 in the dtype that x shall have."""
    x = images[order].to(unit.dtype) / 255
    return ((x - MEAN) / DEVIATION * unit)[:, None], labels[order].long()


def load_inputs(make, digits, batch, h, w, dtype):
    return (
        make.integers(digits, h, w, low=0, high=256, dtype="uint8"),
        make.integers(digits, low=0, high=10, dtype="uint8"),
        make.integers(batch, low=0, high=max(1, digits)),
        make.full(1, value=1.0, dtype=dtype),
    )


load_batch: Op = Op(
    "load_batch",
    loaded,
    load_inputs,
    flops=lambda batch, h, w: 2 * batch * h * w,
    bytes=lambda batch, h, w, dtype: batch * (h * w * (1 + dtype_of(dtype).itemsize) + 17),
    supports=lambda digits: digits > 0 or "no digit to choose from",
    excludes=tuple(
        f"unit:{kind}"  # it is 1
        for kind in ("nan", "inf", "masked", "zeros", "equal", "wide", "huge", "tiny", "denormal")
    ),
    cases=[
        dict(digits=7, batch=3, h=4, w=5, dtype="float32"),
        dict(digits=50, batch=13, h=7, w=9, dtype="float64"),
        dict(digits=100, batch=64, h=28, w=28, dtype="float32"),
    ],
)


def stepped(w, g, rate):
    return w - rate * g


def step_inputs(make, n, dtype):
    return make.normal(n, dtype=dtype), make.normal(n, dtype=dtype), 0.05


sgd_step: Op = Op(
    "sgd_step",
    stepped,
    step_inputs,
    mutates=("w",),
    flops=lambda n: 2 * n,
    bytes=lambda n, dtype: 3 * n * dtype_of(dtype).itemsize,
    cases=[
        dict(n=1000, dtype="float32"),
        dict(n=1823, dtype="float32"),
        dict(n=200_704, dtype="float32"),
    ],
)


@load_batch.launcher("cpp", source="layers.cpp")
def load_by_cpp(lib, x, y, images, labels, order, unit):
    pixels = images.shape[1] * images.shape[2]
    call(lib, "load_batch", x, y, images, labels, order, len(order), pixels, dtype=unit.dtype)


@sgd_step.launcher("cpp", source="layers.cpp")
def step_by_cpp(lib, w, g, rate):
    call(lib, "sgd_step", w, g, rate, w.numel(), dtype=w.dtype)


@load_batch.launcher("cuda/naive", source="naive.cu")
def load_by_cuda(lib, x, y, images, labels, order, unit):
    pixels = images.shape[1] * images.shape[2]
    if len(order):
        out = x if pixels else y  # labels are loaded even of images without a pixel
        kernel = lib[f"load_batch<{lib.type(unit)}>"](**linear_grid(out))
        kernel(x, y, images, labels, order, len(order), pixels)


@sgd_step.launcher("cuda/naive", source="naive.cu")
def step_by_cuda(lib, w, g, rate):
    if w.numel():
        lib[f"sgd_step<{lib.type(w)}>"](**linear_grid(w))(w, g, rate, w.numel())
