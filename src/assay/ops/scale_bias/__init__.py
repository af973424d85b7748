"""scale_bias: y = w x + b, and sigmoid_scale_bias: y = sigmoid(a + b c), element by element.

Written as PyTorch calls, each is a chain of kernels: `w * x` is written to memory and read again by
`+ b`. One kernel for the chain keeps it in a register. Counted in passes over memory of n elements:

    w * x, then + b                5 reads and writes      fused 4
    b * c, a + that, its sigmoid   8                       fused 4
"""

import torch

from assay.inputs import dtype_of
from assay.op import Op

from .. import pointwise

CASES = [
    dict(n=1, dtype="float32"),
    dict(n=1000, dtype="float16"),
    dict(n=1001, dtype="float64"),
    dict(n=10_007, dtype="float32"),
    dict(n=10_007, dtype="bfloat16"),
    dict(n=1 << 24, dtype="float32"),
    dict(n=1 << 24, dtype="bfloat16"),
]


def inputs(make, n, dtype):
    return tuple(make.normal(n, dtype=dtype) for _ in range(3))


def affine(w, x, b):
    return w * x + b


def sigmoid_of_affine(a, b, c):
    return torch.sigmoid(a + b * c)


def moved(n, dtype):
    return 4 * n * dtype_of(dtype).itemsize


scale_bias: Op = Op(
    "scale_bias",
    affine,
    inputs,
    shapes={"w": "...", "x": "...", "b": "..."},
    flops=lambda n: 2 * n,
    bytes=moved,
    cases=CASES,
)
sigmoid_scale_bias: Op = Op(
    "sigmoid_scale_bias",
    sigmoid_of_affine,
    inputs,
    shapes={"a": "...", "b": "...", "c": "..."},
    # multiply, add, negate, exp, add, divide
    flops=lambda n: 6 * n,
    bytes=moved,
    cases=CASES,
)


def slope(dy, w, x):
    return dy * x, dy * w, dy.clone()


def slope_of_sigmoid(dy, b, c, y):
    g = dy * y * (1 - y)
    return g, g * c, g * b


scale_bias_grad = scale_bias.gradient(slope, saves=("w", "x"), wrt=("w", "x", "b"))
sigmoid_scale_bias_grad = sigmoid_scale_bias.gradient(
    slope_of_sigmoid, saves=("b", "c", "y"), wrt=("a", "b", "c")
)


@scale_bias.launcher("cuda/naive", source="scale_bias.cu")
def scale_by_cuda_naive(k, y, w, x, b):
    pointwise.cuda_naive(k, "ScaleBias", y, w, x, b)


@scale_bias.launcher("cuda/vectorised", source="scale_bias.cu", knobs={"UNROLL": [1, 2]})
def scale_by_cuda_vectorised(k, y, w, x, b, UNROLL):
    pointwise.cuda_vectorised(k, "ScaleBias", y, w, x, b, unroll=UNROLL)


@scale_bias.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def scale_by_triton(y, w, x, b, BLOCK):
    from .scale_bias_triton import scale_bias as function

    pointwise.triton_mapped(function, y, w, x, b, block=BLOCK)


@sigmoid_scale_bias.launcher("cuda/naive", source="scale_bias.cu")
def sigmoid_by_cuda_naive(k, y, a, b, c):
    pointwise.cuda_naive(k, "SigmoidScaleBias", y, a, b, c)


@sigmoid_scale_bias.launcher("cuda/vectorised", source="scale_bias.cu", knobs={"UNROLL": [1, 2]})
def sigmoid_by_cuda_vectorised(k, y, a, b, c, UNROLL):
    pointwise.cuda_vectorised(k, "SigmoidScaleBias", y, a, b, c, unroll=UNROLL)


@sigmoid_scale_bias.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def sigmoid_by_triton(y, a, b, c, BLOCK):
    from .scale_bias_triton import sigmoid_scale_bias as function

    pointwise.triton_mapped(function, y, a, b, c, block=BLOCK)
