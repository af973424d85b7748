"""y = w x + b and y = sigmoid(a + b c) in Triton: what ../pointwise_triton.py maps over arrays.

What one call would write for the next to read stays in a register.

shapes  y and the three inputs: n elements, contiguous, of one floating dtype
bytes   4 * n * itemsize
FLOPs   2 * n, and 6 * n counting exp as one
"""

import triton
import triton.language as tl


@triton.jit
def scale_bias(w, x, b):
    return w * x + b


@triton.jit
def sigmoid_scale_bias(a, b, c):
    return 1 / (1 + tl.exp(-(a + b * c)))
