"""y = c[0] + c[1] x + c[2] x^2 + ... in Numba by Horner's rule: one thread an element.

float16 is computed in float32.

shapes  y, x: n elements; c: terms coefficients, from the constant one up; 1-D, of one dtype
bytes   2 * n * itemsize
FLOPs   2 * n * (terms - 1)
"""

import functools

import numba
from numba import cuda

THREADS = 128
"""A block; small, because the simulator pays for every thread, the idle ones too."""


@functools.cache
def kernel_for(dtype: str):
    """The kernel for arrays of that dtype: computes in float64 for float64, else in float32."""
    wide = numba.float64 if dtype == "float64" else numba.float32

    @cuda.jit
    def kernel(y, x, c):
        i = cuda.grid(1)
        if i < x.size:
            v = wide(x[i])
            total = wide(c[c.size - 1])
            for k in range(c.size - 2, -1, -1):
                total = wide(total * v + wide(c[k]))
            y[i] = total

    return kernel
