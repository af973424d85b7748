"""Numba kernels as they are written for a GPU. Their launches and references: python_entries.py."""

from __future__ import annotations

import math

from numba import cuda, float32, float64, int32


@cuda.jit
def square(y, x):
    """y = x * x. 8 n bytes, n FLOPs."""
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * x[i]


@cuda.jit
def reduce_sum(partial, x):
    """partial[b] = sum of a block: a tree in shared memory."""
    tree = cuda.shared.array(128, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    tree[t] = x[i] if i < x.size else 0.0
    half = 64
    while half > 0:
        cuda.syncthreads()
        if t < half:
            tree[t] += tree[t + half]
        half //= 2
    if t == 0:
        partial[cuda.blockIdx.x] = tree[0]


@cuda.jit
def softmax(y, x):
    """A row a block of 64: largest value and sum through one shared array."""
    tree = cuda.shared.array(64, float32)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    most = float32(-3.0e38)
    for i in range(t, x.shape[1], 64):
        most = max(most, x[row, i])
    tree[t] = most
    cuda.syncthreads()
    half = 32
    while half > 0:
        if t < half:
            tree[t] = max(tree[t], tree[t + half])
        cuda.syncthreads()
        half //= 2
    most = tree[0]
    cuda.syncthreads()
    total = float32(0)
    for i in range(t, x.shape[1], 64):
        total += math.exp(x[row, i] - most)
    tree[t] = total
    cuda.syncthreads()
    half = 32
    while half > 0:
        if t < half:
            tree[t] += tree[t + half]
        cuda.syncthreads()
        half //= 2
    for i in range(t, x.shape[1], 64):
        y[row, i] = math.exp(x[row, i] - most) / tree[0]


@cuda.jit
def transpose(y, x):
    """Through a padded tile of 16 x 16 in shared memory."""
    tile = cuda.shared.array((16, 17), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row, col = cuda.blockIdx.y * 16 + ty, cuda.blockIdx.x * 16 + tx
    if row < x.shape[0] and col < x.shape[1]:
        tile[ty, tx] = x[row, col]
    cuda.syncthreads()
    row, col = cuda.blockIdx.x * 16 + ty, cuda.blockIdx.y * 16 + tx
    if row < y.shape[0] and col < y.shape[1]:
        y[row, col] = tile[tx, ty]


@cuda.jit
def matmul(c, a, b):
    """C = A B by tiles of 8 x 8. 2 m n k FLOPs."""
    p = cuda.shared.array((8, 8), float32)
    q = cuda.shared.array((8, 8), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    total = float32(0)
    for start in range(0, a.shape[1], 8):
        inside = row < c.shape[0] and start + tx < a.shape[1]
        p[ty, tx] = a[row, start + tx] if inside else float32(0)
        inside = col < c.shape[1] and start + ty < b.shape[0]
        q[ty, tx] = b[start + ty, col] if inside else float32(0)
        cuda.syncthreads()
        for j in range(8):
            total += p[ty, j] * q[j, tx]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = total


@cuda.jit
def histogram(count, x):
    """64 bins: atomics in shared memory, then in global memory."""
    own = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    if t < 64:
        own[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(own, x[i], 1)
    cuda.syncthreads()
    if t < 64:
        cuda.atomic.add(count, t, own[t])


@cuda.jit
def largest_three(y, x):
    """The three largest of each column, in a local array kept in order."""
    kept = cuda.local.array(3, float32)
    c = cuda.grid(1)
    if c >= x.shape[1]:
        return
    for k in range(3):
        kept[k] = -math.inf
    for r in range(x.shape[0]):
        v = x[r, c]
        for k in range(3):
            if v > kept[k]:
                kept[k], v = v, kept[k]
    for k in range(3):
        y[k, c] = kept[k]


@cuda.jit
def warp_sum(y, x):
    """Sum of each warp by shuffles, added by its first lane."""
    v = x[cuda.grid(1)]
    step = 16
    while step > 0:
        v += cuda.shfl_xor_sync(0xFFFFFFFF, v, step)
        step //= 2
    if cuda.laneid == 0:
        cuda.atomic.add(y, 0, v)


@cuda.jit
def black_scholes(call, price, strike, years):
    """Price of a European call, float64, through erf, exp, log and sqrt."""
    i = cuda.grid(1)
    if i >= price.size:
        return
    rate, sigma = 0.02, 0.3
    root = sigma * math.sqrt(years[i])
    d1 = (math.log(price[i] / strike[i]) + (rate + 0.5 * sigma * sigma) * years[i]) / root
    d2 = d1 - root
    n1 = 0.5 * (1.0 + math.erf(d1 / math.sqrt(2.0)))
    n2 = 0.5 * (1.0 + math.erf(d2 / math.sqrt(2.0)))
    call[i] = price[i] * n1 - strike[i] * math.exp(-rate * years[i]) * n2


@cuda.jit(device=True)
def escape(cr, ci, most):
    zr, zi = float64(0), float64(0)
    for k in range(most):
        zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
        if zr * zr + zi * zi > 4:
            return k
    return most


@cuda.jit
def mandelbrot(y, most):
    """Steps to escape over a 2-D grid walked in strides, by a device function."""
    startx, starty = cuda.grid(2)
    stepx, stepy = cuda.gridsize(2)
    for i in range(starty, y.shape[0], stepy):
        for j in range(startx, y.shape[1], stepx):
            y[i, j] = escape(-2 + 3 * j / y.shape[1], -1 + 2 * i / y.shape[0], most)


@cuda.jit
def scan(y, x):
    """Inclusive sums of one block of 64, two barriers a step."""
    kept = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    kept[t] = x[t]
    cuda.syncthreads()
    step = 1
    while step < 64:
        before = kept[t - step] if t >= step else 0
        cuda.syncthreads()
        kept[t] += before
        cuda.syncthreads()
        step *= 2
    y[t] = kept[t]


@cuda.jit
def strided(y, x):
    """A view with steps of its own: every third column backwards."""
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        y[i, j] = 2 * x[i, j]
