"""y[b] = how many of x are b in Numba: an atomic addition for each element. 1-D arrays."""

from numba import cuda

THREADS = 128


@cuda.jit
def kernel(y, x):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(y, x[i], 1)
