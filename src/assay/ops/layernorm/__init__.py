"""layernorm over the last dimension: y = (x - mean) rstd w + b, rstd = 1 / sqrt(var + 1e-5).

mean = sum_j x[r, j] / n and var = sum_j (x[r, j] - mean)^2 / n of each row. The squares are taken
about the mean, in a second pass over the row: sum x^2 - n mean^2 would cancel where the mean is
large. Held in registers, a second pass costs no memory traffic.

With h = (x - mean) rstd and g = dy w the gradients are, mean(...) over a row:

    dx = rstd (g - mean(g) - h mean(g h))      dw = sum_r dy h      db = sum_r dy

They are computed from x and w alone: x has to be read anyway, so saved statistics save nothing.
"""

import torch
import torch.nn.functional as F

from assay.errors import OpError
from assay.inputs import dtype_of
from assay.op import Op

from .. import norms
from ..launching import accumulator, widened
from ..rows import by_tiles, few_long, of_rows, short, streamable, streamed


def reference(x, w, b):
    return F.layer_norm(x, x.shape[-1:], w, b, 1e-5)


def inputs(make, rows, n, dtype):
    if n < 2:
        # x - mean is 0 then, and y is b; the gradient is 0, and what comes out is rounding alone.
        raise OpError("layernorm: a row has at least two elements")
    x = make.normal(rows, n, dtype=dtype, mean=0.5)
    return x, make.normal(n, dtype=dtype, mean=1, std=0.2), make.normal(n, dtype=dtype)


layernorm: Op = Op(
    "layernorm",
    reference,
    inputs,
    shapes={"x": "... n", "w": "n", "b": "n"},
    flops=lambda rows, n: 8 * rows * n,
    bytes=lambda rows, n, dtype: (2 * rows * n + 2 * n) * dtype_of(dtype).itemsize,
    excludes=("x:huge",),  # squares that overflow
    cases=[
        dict(rows=1, n=3, dtype="float32"),
        dict(rows=3, n=1000, dtype="float16"),
        dict(rows=5, n=129, dtype="float64"),
        dict(rows=64, n=257, dtype="float32"),
        dict(rows=64, n=257, dtype="bfloat16"),
        dict(rows=2, n=100_003, dtype="float32"),
        dict(rows=2048, n=4096, dtype="float32"),
        dict(rows=2048, n=4096, dtype="bfloat16"),
    ],
)


@layernorm.launcher("cuda/held", source="layernorm.cu")
def by_cuda(k, y, x, w, b):
    if x.numel():
        norms.normalised(k, "layernorm", y, x, w, b)


@layernorm.launcher("cuda/streamed", source="layernorm.cu", when=streamable)
def by_cuda_streamed(k, y, x, w, b):
    if x.numel():
        streamed(k, "layernorm", x, (y, x, w, b))


@layernorm.launcher("cuda/split", source="layernorm.cu", when=few_long)
def by_cuda_split(k, y, x, w, b):
    if x.numel():
        norms.split(k, "layernorm", y, x, w, b)


@layernorm.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def by_triton(y, x, w, b, BLOCK):
    from .layernorm_triton import kernel

    if x.numel():
        rows, n = of_rows(x)
        kernel[(rows,)](y, x, w, b, n, BLOCK, num_warps=8)


@layernorm.launcher("triton/held", when=short)
def by_triton_held(y, x, w, b):
    from .layernorm_triton import held_kernel

    if x.numel():
        by_tiles(held_kernel, *of_rows(x), (y, x, w, b))


def formula(dy, x, w):
    kind, (dy, x, w) = x.dtype, widened(dy, x, w)
    mean = x.mean(-1, keepdim=True)
    rstd = ((x - mean).square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    h, g = (x - mean) * rstd, dy * w
    dx = rstd * (g - g.mean(-1, keepdim=True) - h * (g * h).mean(-1, keepdim=True))
    return dx.to(kind), norms.over_rows(dy * h).to(kind), norms.over_rows(dy).to(kind)


layernorm_grad = layernorm.gradient(
    formula,
    saves=("x", "w"),
    wrt=("x", "w", "b"),
    cases=norms.narrower(layernorm.cases),
    flops=lambda rows, n: 15 * rows * n,
    bytes=lambda rows, n, dtype: (3 * rows * n + 3 * n) * dtype_of(dtype).itemsize,
)


@layernorm_grad.launcher("cuda/held", source="layernorm.cu")
def gradient_by_cuda(k, dx, dw, db, dy, x, w):
    norms.gradient(k, "layernorm", dx, (dw, db), dy, x, w)


@layernorm_grad.launcher("triton", knobs={"BLOCK": [1024]})
def gradient_by_triton(dx, dw, db, dy, x, w, BLOCK):
    from .layernorm_triton import columns_kernel, gradient_kernel

    rows, n = of_rows(x)
    if not n:
        return
    kept = torch.empty(rows, 2, dtype=accumulator(x), device=x.device)
    if rows:
        gradient_kernel[(rows,)](dx, kept, dy, x, w, n, BLOCK, num_warps=8)
    columns_kernel[((n + 31) // 32,)](dw, db, kept, dy, x, rows, n, 32, 32)


@layernorm_grad.launcher("triton/held", when=norms.summable)
def gradient_by_triton_held(dx, dw, db, dy, x, w):
    norms.gradient_by_triton(dx, (dw, db), dy, x, w, 1e-5)
