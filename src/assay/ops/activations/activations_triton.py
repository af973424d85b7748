"""Eight activations in Triton: what ../pointwise_triton.py maps over an array.

x comes widened to float32, or is float64, and y is rounded once, by the store: between them no
number is narrow.

shapes  y, x: n elements, contiguous, of one floating dtype
bytes   2 * n * itemsize
FLOPs   1 (relu) to 20 (gelu) an element
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def normal_tail(v):
    """Phi(-v), v >= 0, in float32: the fit of include/normal.cuh, where it is explained."""
    v = tl.minimum(v, 16.0)
    kv = 0.25455844 * v
    t = 1 / (1 + kv)
    s = kv * t
    p = 0.027068360 * s - 0.068215333
    p = p * s - 0.016112866
    p = p * s + 0.17887786
    p = p * s + 0.011700175
    p = p * s - 0.68805903
    p = p * s + 1.2235205
    p = p * s - 1.0671886
    p = p * s + 0.49999997
    square = v * v
    power = -0.72134752 * square
    rest = tl.fma(tl.full(v.shape, -0.72134752, tl.float32), square, -power)
    rest = rest - 0.72134752 * tl.fma(v, v, -square) - 9.6298149e-9 * square
    e = tl.exp2(power)
    return p * t * (e + e * (rest * 0.69314718))


@triton.jit
def gelu(x):
    if x.dtype == tl.float64:
        return x * (0.5 * libdevice.erfc(-x * 0.7071067811865476))
    tail = normal_tail(tl.abs(x))
    return x * tl.where(x < 0, tail, 1 - tail)


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
