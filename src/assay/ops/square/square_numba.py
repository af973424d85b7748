"""y = x * x in Numba: one thread an element. x and y are 1-D arrays of one dtype."""

from numba import cuda

THREADS = 128
"""A block; small, because the simulator pays for every thread, the idle ones too."""


@cuda.jit
def kernel(y, x):
    i = cuda.grid(1)
    if i < x.size:
        # Numba multiplies int32 in 64 bits and the store cuts it: it wraps around, as in torch.
        y[i] = x[i] * x[i]
