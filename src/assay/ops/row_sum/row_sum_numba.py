"""Sums in Numba: a block a row, added by halving in shared memory; or partial sums of all elements.

Every number in a kernel is of the type it computes in, or Numba would go over to float64.

shapes  x: (rows, n), and y: rows elements; or x: n elements, and partial: one a block
bytes   rows * n * itemsize
FLOPs   rows * n
"""

import functools

import numba
from numba import cuda

THREADS = 128
"""A block, a power of two; small, because the simulator pays for every thread."""


@functools.cache
def _halved(wide):
    """A device function: the sum of one number of each thread of the block, for all of them."""

    @cuda.jit(device=True)
    def halved(mine):
        sums = cuda.shared.array(THREADS, wide)
        thread = cuda.threadIdx.x
        sums[thread] = mine
        cuda.syncthreads()
        step = THREADS // 2
        while step > 0:
            if thread < step:
                sums[thread] = wide(sums[thread] + sums[thread + step])
            cuda.syncthreads()
            step //= 2
        return sums[0]

    return halved


def _wide(dtype: str):
    return numba.float64 if dtype == "float64" else numba.float32


@functools.cache
def kernel_for(dtype: str):
    """The kernel of row sums for results of that dtype, in float32 or, for float64, float64."""
    wide = _wide(dtype)
    halved = _halved(wide)

    @cuda.jit
    def kernel(y, x):
        row = cuda.blockIdx.x
        total = wide(0)
        for i in range(cuda.threadIdx.x, x.shape[1], THREADS):
            total = wide(total + wide(x[row, i]))
        total = halved(total)
        if cuda.threadIdx.x == 0:
            y[row] = total

    return kernel


@functools.cache
def partial_kernel_for(dtype: str):
    """Partial sums, one a block, of every gridDim-th THREADS elements."""
    wide = _wide(dtype)
    halved = _halved(wide)

    @cuda.jit
    def kernel(partial, x):
        total = wide(0)
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            total = wide(total + wide(x[i]))
        total = halved(total)
        if cuda.threadIdx.x == 0:
            partial[cuda.blockIdx.x] = total

    return kernel
