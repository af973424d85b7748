"""How the activations are declared: one Op each with its gradient, all in the same ways."""

from __future__ import annotations

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


def functor(name):
    """`GeluTanh` of `gelu_tanh`: what the .cu calls it, for `tanh` is a function there."""
    return "".join(word.title() for word in name.split("_"))


def activation(name, reference, inputs, flops, cases=CASES, **declared):
    """The Op y = f(x), by kernels that take f from activations.cu and activations_triton.py.

    flops: operations an element, each exp, log and division counted as one.
    """
    op = Op(
        name,
        reference,
        inputs,
        shapes={"x": "..."},
        flops=lambda n: flops * n,
        bytes=lambda n, dtype: 2 * n * dtype_of(dtype).itemsize,
        cases=cases,
        **declared,
    )

    @op.launcher("cuda/naive", source="activations.cu")
    def by_cuda_naive(k, y, x):
        pointwise.cuda_naive(k, functor(name), y, x)

    @op.launcher("cuda/vectorised", source="activations.cu", knobs={"UNROLL": [2, 1]})
    def by_cuda_vectorised(k, y, x, UNROLL):
        pointwise.cuda_vectorised(k, functor(name), y, x, unroll=UNROLL)

    @op.launcher("triton", knobs={"BLOCK": [1024, 4096]})
    def by_triton(y, x, BLOCK):
        from . import activations_triton

        pointwise.triton_mapped(getattr(activations_triton, name), y, x, block=BLOCK)

    return op


def slope(op, formula, saves, flops, **declared):
    """The gradient dx = dy f'(x) of such an Op, computed from x or from y, whichever it saves."""
    grad = op.gradient(
        formula,
        saves=saves,
        wrt="x",
        flops=lambda n: flops * n,
        bytes=lambda n, dtype: 3 * n * dtype_of(dtype).itemsize,
        **declared,
    )

    @grad.launcher("cuda/vectorised", source="activations_grad.cu", knobs={"UNROLL": [1, 2]})
    def by_cuda_vectorised(k, dx, dy, saved, UNROLL):
        pointwise.cuda_vectorised(k, functor(grad.name), dx, dy, saved, unroll=UNROLL)

    @grad.launcher("triton", knobs={"BLOCK": [1024, 4096]})
    def by_triton(dx, dy, saved, BLOCK):
        from . import activations_grad_triton

        function = getattr(activations_grad_triton, grad.name)
        pointwise.triton_mapped(function, dx, dy, saved, block=BLOCK)

    return grad
