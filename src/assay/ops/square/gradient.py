"""The gradient of square: dx[i] = 2 x[i] dy[i]. It saves x, and has itself a gradient.

With h the gradient of dx: ddy = 2 x h and dx2 = 2 dy h, so a double backward is two more squares.
"""

from .. import pointwise
from ..launching import INCLUDE, function_for
from . import square


def formula(dy, x):
    return 2 * (x * dy)


square_grad = square.gradient(
    formula,
    saves="x",
    wrt="x",
    flops=lambda m, n: 2 * m * n,
)


def again(h, dy, x):
    return 2 * (x * h), 2 * (dy * h)


square_grad_grad = square_grad.gradient(again, saves=("dy", "x"), wrt=("dy", "x"))


@square_grad.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def by_triton(dx, dy, x, BLOCK):
    from .square_grad_triton import kernel

    n = x.numel()
    if n:
        kernel[((n + BLOCK - 1) // BLOCK,)](dy, x, dx, n, BLOCK)


@square_grad.launcher("cpp", source="square_grad.cpp", include=INCLUDE)
def by_cpp(k, dx, dy, x):
    function_for(k, "square_grad", x)(dx, dy, x, x.numel())


@square_grad.launcher("cuda/vectorised", source="square_grad.cu", knobs={"UNROLL": [1, 2]})
def by_cuda_vectorised(k, dx, dy, x, UNROLL):
    pointwise.cuda_vectorised(k, "SquareGrad", dx, dy, x, unroll=UNROLL)


@square_grad.launcher("extension", source="square_extension.cpp")
def by_extension(k, dx, dy, x):
    k.square_grad_out(dx, dy, x)
