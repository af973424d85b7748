"""y[b] = how many of x are b in Numba: an atomic addition for each element.

shapes  x: n ints in [0, bins); y: bins counters of 64 bits, 0 at first; 1-D arrays
bytes   4 * n, and 8 * bins
FLOPs   n integer additions
"""

from numba import cuda

THREADS = 128


@cuda.jit
def kernel(y, x):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(y, x[i], 1)
