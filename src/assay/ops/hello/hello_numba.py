"""Every thread writes its indices, in Numba: `cuda.grid(3)` is blockIdx * blockDim + threadIdx.

shapes  x: (d, h, w) of int32; out: (d, h, w, 8); arrays of 3 and 4 dimensions
bytes   36 * d * h * w: 4 read and 32 written an element
FLOPs   none
"""

from numba import cuda


@cuda.jit
def kernel(out, x):
    i, j, k = cuda.grid(3)
    if k < x.shape[0] and j < x.shape[1] and i < x.shape[2]:
        out[k, j, i, 0] = cuda.blockIdx.x
        out[k, j, i, 1] = cuda.blockIdx.y
        out[k, j, i, 2] = cuda.blockIdx.z
        out[k, j, i, 3] = cuda.threadIdx.x
        out[k, j, i, 4] = cuda.threadIdx.y
        out[k, j, i, 5] = cuda.threadIdx.z
        out[k, j, i, 6] = (k * x.shape[1] + j) * x.shape[2] + i
        out[k, j, i, 7] = x[k, j, i]
