"""Eight activations in Triton: what ../pointwise_triton.py maps over an array.

x comes widened to float32, or is float64. bytes 2 * n * itemsize; FLOPs 1 (relu) to 20 (gelu).
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def gelu(x):
    return x * (0.5 * libdevice.erfc(-x * 0.7071067811865476))


@triton.jit
def gelu_tanh(x):
    return x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


@triton.jit
def relu(x):
    return tl.where(x < 0, 0, x)  # so written, a NaN stays


@triton.jit
def tanh(x):
    return libdevice.tanh(x)


@triton.jit
def elu(x):
    return tl.where(x > 0, x, libdevice.expm1(x))


@triton.jit
def softplus(x):
    return tl.where(x > 20, x, libdevice.log1p(tl.exp(x)))


@triton.jit
def swish(x):
    return x * sigmoid(x)
