"""y = a + b in Numba: four elements a thread, a block apart.

A thread that sends for eight numbers before it adds two keeps four times as much on its way.

shapes  y, a, b: n elements, 1-D arrays of one dtype
bytes   3 * n * itemsize: two read and one written for each element
FLOPs   n
"""

from numba import cuda

THREADS, EACH = 128, 4
"""A block, and elements of a thread; few, because the simulator pays for every thread."""


@cuda.jit
def kernel(y, a, b):
    step = cuda.blockDim.x
    i = cuda.blockIdx.x * step * EACH + cuda.threadIdx.x
    if i + 3 * step < a.size:
        a1, a2, a3, a4 = a[i], a[i + step], a[i + 2 * step], a[i + 3 * step]
        b1, b2, b3, b4 = b[i], b[i + step], b[i + 2 * step], b[i + 3 * step]
        y[i] = a1 + b1
        y[i + step] = a2 + b2
        y[i + 2 * step] = a3 + b3
        y[i + 3 * step] = a4 + b4
    else:
        while i < a.size:  # less than four blocks of elements are left
            y[i] = a[i] + b[i]
            i += step
