"""y = a + b in Numba: one thread an element. y, a and b are 1-D arrays of one dtype."""

from numba import cuda

THREADS = 128
"""A block; small, because the simulator pays for every thread, the idle ones too."""


@cuda.jit
def kernel(y, a, b):
    i = cuda.grid(1)
    if i < a.size:
        y[i] = a[i] + b[i]
