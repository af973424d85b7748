"""y[j, i] = x[i, j] in Numba, through a padded tile in shared memory: both sides go along rows.

shapes  x: (m, n); y: (n, m); 2-D arrays of one dtype
bytes   2 * m * n * itemsize
FLOPs   none
"""

import functools

import numba
import numpy as np
from numba import cuda

TILE, ROWS = 32, 8
"""A block of 32 x 8 threads takes its tile of 32 x 32 in four steps."""
SHAPE = (TILE, TILE + 1)
"""A row of the tile is one longer: a column lies in 32 banks of shared memory."""


@functools.cache
def kernel_for(dtype: str):
    """The kernel for arrays of that dtype, which the tile in shared memory must have."""
    kind = numba.from_dtype(np.dtype(dtype))

    @cuda.jit
    def kernel(y, x):
        tile = cuda.shared.array(SHAPE, kind)
        across = (x.shape[1] + TILE - 1) // TILE
        i0 = cuda.blockIdx.x // across * TILE
        j0 = cuda.blockIdx.x % across * TILE
        tx = cuda.threadIdx.x
        for r in range(cuda.threadIdx.y, TILE, ROWS):
            if i0 + r < x.shape[0] and j0 + tx < x.shape[1]:
                tile[r, tx] = x[i0 + r, j0 + tx]
        cuda.syncthreads()
        for r in range(cuda.threadIdx.y, TILE, ROWS):
            if j0 + r < x.shape[1] and i0 + tx < x.shape[0]:
                y[j0 + r, i0 + tx] = tile[tx, r]

    return kernel
