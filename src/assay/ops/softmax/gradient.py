"""The gradient of softmax: dx = y (dy - sum_j dy_j y_j) over the last dimension. It saves y alone.

y is what the forward wrote, rounded to its dtype: the truth is this formula over that y, not
autograd from x, from which a perfect bfloat16 kernel would be thousands of roundings away.
"""

import torch

from assay.errors import NotSupported
from assay.inputs import dtype_name, dtype_of

from ..rows import by_rows
from . import softmax


def formula(dy, y):
    return y * (dy - (dy * y).sum(-1, keepdim=True))


softmax_grad = softmax.gradient(
    formula,
    saves="y",
    wrt="x",
    # multiply, add, subtract, multiply
    flops=lambda rows, n: 4 * rows * n,
    bytes=lambda rows, n, dtype: 3 * rows * n * dtype_of(dtype).itemsize,
)


@softmax_grad.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def by_triton(dx, dy, y, BLOCK):
    from .softmax_grad_triton import kernel

    if y.numel():
        n = y.shape[-1]
        kernel[(y.numel() // n,)](dy, y, dx, n, BLOCK, num_warps=8)


@softmax_grad.launcher("cuda/held", source="softmax_grad.cu")
def by_cuda_held(k, dx, dy, y):
    if y.numel():
        n = y.shape[-1]
        by_rows(k, "softmax_grad", y.numel() // n, n, k.type(y), y.element_size(), (dx, dy, y), 16)


@softmax_grad.launcher("cpp", source="softmax_grad.cpp")
def by_cpp(k, dx, dy, y):
    functions = {
        torch.float32: "softmax_grad_float32",
        torch.float64: "softmax_grad_float64",
        torch.float16: "softmax_grad_float16",
        torch.bfloat16: "softmax_grad_bfloat16",
    }
    if y.dtype not in functions:
        supported = ", ".join(dtype_name(dtype) for dtype in functions)
        raise NotSupported(f"{dtype_name(y.dtype)}: supported: {supported}")
    if y.numel():
        n = y.shape[-1]
        getattr(k, functions[y.dtype])(dx, dy, y, y.numel() // n, n)
