"""y = softmax(x) over the last dimension in Numba: one block a row, online, any row length.

Every number in a kernel is of the type it computes in: a plain `0.0` is float64 in Numba and would
pull the arithmetic around it there, which a GPU does at a fraction of the speed.

shapes  x, y: (rows, n), 2-D arrays of one floating dtype
bytes   2 * rows * n * itemsize: the second walk finds the row in a cache, if it fits
FLOPs   5 * rows * n counting exp as one (max, subtract, exp, add, divide); two exps are done, and a
        third where the largest grows
"""

import functools
import math

import numba
import numpy as np
from numba import cuda

THREADS = 64
"""A block; small, because the simulator pays for every thread. A power of two."""


@functools.cache
def kernel_for(dtype: str):
    """The kernel for arrays of that dtype: computes in float64 for float64, else in float32."""
    wide = numba.float64 if dtype == "float64" else numba.float32
    number = np.float64 if dtype == "float64" else np.float32
    lowest, zero, one = number(-math.inf), number(0), number(1)

    @cuda.jit
    def kernel(y, x):
        row = cuda.blockIdx.x
        thread = cuda.threadIdx.x
        tops = cuda.shared.array(THREADS, wide)
        sums = cuda.shared.array(THREADS, wide)

        # A NaN never becomes `top` but always enters `total`; with no shift while all is -inf,
        # exp(-inf - 0) adds 0, where exp(-inf + inf) would add NaN.
        top = lowest
        total = zero
        for i in range(thread, x.shape[1], THREADS):
            v = wide(x[row, i])
            if v > top:
                total = wide(total * wide(math.exp(wide(top - v))))
                top = v
            shift = zero if top == lowest else top
            total = wide(total + wide(math.exp(wide(v - shift))))
        tops[thread] = top
        sums[thread] = total
        cuda.syncthreads()

        # Halving: thread t takes in thread t + step.
        step = THREADS // 2
        while step > 0:
            if thread < step:
                mine = tops[thread]
                other = tops[thread + step]
                both = mine if mine > other else other
                shift = zero if both == lowest else both
                sums[thread] = wide(
                    sums[thread] * wide(math.exp(wide(mine - shift)))
                    + sums[thread + step] * wide(math.exp(wide(other - shift)))
                )
                tops[thread] = both
            cuda.syncthreads()
            step //= 2

        shift = zero if tops[0] == lowest else tops[0]
        scale = wide(one / sums[0])
        for i in range(thread, x.shape[1], THREADS):
            y[row, i] = wide(wide(math.exp(wide(wide(x[row, i]) - shift))) * scale)

    return kernel
