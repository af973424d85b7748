"""rmsnorm over the last dimension: y = x rstd w, rstd = 1 / sqrt(sum_j x[r, j]^2 / n + 1e-6).

layernorm without the mean and the shift. With h = x rstd and g = dy w the gradients are

    dx = rstd (g - h mean(g h))      dw = sum_r dy h
"""

import torch
import torch.nn.functional as F

from assay.inputs import dtype_of
from assay.op import Op

from .. import norms
from ..launching import accumulator, widened
from ..rows import by_tiles, few_long, of_rows, short, streamable, streamed


def reference(x, w):
    return F.rms_norm(x, x.shape[-1:], w, 1e-6)


def inputs(make, rows, n, dtype):
    return make.normal(rows, n, dtype=dtype), make.normal(n, dtype=dtype, mean=1, std=0.2)


rmsnorm: Op = Op(
    "rmsnorm",
    reference,
    inputs,
    shapes={"x": "... n", "w": "n"},
    flops=lambda rows, n: 4 * rows * n,
    bytes=lambda rows, n, dtype: (2 * rows * n + n) * dtype_of(dtype).itemsize,
    excludes=("x:huge",),  # squares that overflow
    cases=[
        dict(rows=1, n=2, dtype="float32"),
        dict(rows=3, n=1000, dtype="float16"),
        dict(rows=5, n=129, dtype="float64"),
        dict(rows=64, n=257, dtype="float32"),
        dict(rows=64, n=257, dtype="bfloat16"),
        dict(rows=2, n=100_003, dtype="float32"),
        dict(rows=2048, n=4096, dtype="float32"),
        dict(rows=2048, n=4096, dtype="bfloat16"),
    ],
)


@rmsnorm.launcher("cuda/held", source="rmsnorm.cu")
def by_cuda(k, y, x, w):
    if x.numel():
        norms.normalised(k, "rmsnorm", y, x, w)


@rmsnorm.launcher("cuda/streamed", source="rmsnorm.cu", when=streamable)
def by_cuda_streamed(k, y, x, w):
    if x.numel():
        streamed(k, "rmsnorm", x, (y, x, w))


@rmsnorm.launcher("cuda/split", source="rmsnorm.cu", when=few_long)
def by_cuda_split(k, y, x, w):
    if x.numel():
        norms.split(k, "rmsnorm", y, x, w)


@rmsnorm.launcher("triton", knobs={"BLOCK": [1024, 2048]})
def by_triton(y, x, w, BLOCK):
    from .rmsnorm_triton import kernel

    if x.numel():
        rows, n = of_rows(x)
        kernel[(rows,)](y, x, w, n, BLOCK, num_warps=BLOCK // 128)


@rmsnorm.launcher("triton/held", when=short)
def by_triton_held(y, x, w):
    from .rmsnorm_triton import held_kernel

    if x.numel():
        by_tiles(held_kernel, *of_rows(x), (y, x, w))


def formula(dy, x, w):
    kind, (dy, x, w) = x.dtype, widened(dy, x, w)
    rstd = (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
    h, g = x * rstd, dy * w
    dx = rstd * (g - h * (g * h).mean(-1, keepdim=True))
    return dx.to(kind), norms.over_rows(dy * h).to(kind)


rmsnorm_grad = rmsnorm.gradient(
    formula,
    saves=("x", "w"),
    wrt=("x", "w"),
    # g - h mean(g h) = g (1 - h^2), and h^2 = 1 - eps / (x^2 + eps).
    supports=lambda n: n > 1 or "of one element all of dx cancels but 1e-6 / x^2 of it",
    cases=norms.narrower(rmsnorm.cases),
    flops=lambda rows, n: 11 * rows * n,
    bytes=lambda rows, n, dtype: (3 * rows * n + 2 * n) * dtype_of(dtype).itemsize,
)


@rmsnorm_grad.launcher("cuda/held", source="rmsnorm.cu")
def gradient_by_cuda(k, dx, dw, dy, x, w):
    norms.gradient(k, "rmsnorm", dx, (dw,), dy, x, w)


@rmsnorm_grad.launcher("triton", knobs={"BLOCK": [1024]})
def gradient_by_triton(dx, dw, dy, x, w, BLOCK):
    from .rmsnorm_triton import columns_kernel, gradient_kernel

    rows, n = of_rows(x)
    if not n:
        return
    kept = torch.empty(rows, dtype=accumulator(x), device=x.device)
    if rows:
        gradient_kernel[(rows,)](dx, kept, dy, x, w, n, BLOCK, num_warps=8)
    columns_kernel[((n + 31) // 32,)](dw, kept, dy, x, rows, n, 32, 32)


@rmsnorm_grad.launcher("triton/held", when=norms.summable)
def gradient_by_triton_held(dx, dw, dy, x, w):
    norms.gradient_by_triton(dx, (dw,), dy, x, w, 1e-6)
