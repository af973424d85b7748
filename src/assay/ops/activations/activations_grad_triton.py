"""The slopes of eight activations in Triton: what ../pointwise_triton.py maps over dy and x or y.

A slope that y alone tells is worked out of y, so that x need not be kept.

shapes  dx, dy and what was saved (x, or y for relu, tanh and sigmoid): n elements, of one dtype
bytes   3 * n * itemsize
FLOPs   1 (relu) to 26 (gelu) an element
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice

from .activations_triton import sigmoid


@triton.jit
def gelu_grad(dy, x):
    below = 0.5 * libdevice.erfc(-x * 0.7071067811865476)
    return dy * (below + x * (0.3989422804014327 * tl.exp(-0.5 * x * x)))


@triton.jit
def gelu_tanh_grad(dy, x):
    s = sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))
    # Beyond 64 the slope is 0 or 1; without the bound x^2 would make it 0 * inf.
    v = tl.where(x > 64, 64, tl.where(x < -64, -64, x))
    return dy * (s + v * s * (1 - s) * 1.5957691216057308 * (1 + 0.134145 * v * v))


@triton.jit
def relu_grad(dy, y):
    return tl.where(y <= 0, 0, dy)


@triton.jit
def tanh_grad(dy, y):
    return dy * (1 - y * y)


@triton.jit
def sigmoid_grad(dy, y):
    return dy * y * (1 - y)


@triton.jit
def elu_grad(dy, x):
    return tl.where(x > 0, dy, dy * tl.exp(x))


@triton.jit
def softplus_grad(dy, x):
    return tl.where(x > 20, dy, dy * sigmoid(x))


@triton.jit
def swish_grad(dy, x):
    s = sigmoid(x)
    return dy * (s * (1 + x * (1 - s)))
