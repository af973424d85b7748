"""The gradient of softmax: dx = y (dy - sum_j dy_j y_j) over the last dimension. It saves y alone.

y is what the forward wrote, rounded to its dtype: the truth is this formula over that y, not
autograd from x, from which a perfect bfloat16 kernel would be thousands of roundings away.
"""

from assay.inputs import dtype_of

from ..launching import INCLUDE, function_for, widened
from ..rows import by_rows
from . import softmax


def formula(dy, y):
    kind, (dy, y) = y.dtype, widened(dy, y)
    return (y * (dy - (dy * y).sum(-1, keepdim=True))).to(kind)


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
        by_rows(k, "softmax_grad", y, (dx, dy, y), 16)


@softmax_grad.launcher("cpp", source="softmax_grad.cpp", include=INCLUDE)
def by_cpp(k, dx, dy, y):
    function = function_for(k, "softmax_grad", y)
    if y.numel():
        n = y.shape[-1]
        function(dx, dy, y, y.numel() // n, n)
