"""Triton and Numba kernels with one planted fault each; `right` makes the right twin.

The line at fault says FAULT.
"""

from __future__ import annotations

import triton
import triton.language as tl
from numba import cuda, float32


@triton.jit
def unmasked_store(y, x, n, BLOCK: tl.constexpr, RIGHT: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    if RIGHT:
        tl.store(y + at, v, mask=at < n)
    else:
        tl.store(y + at, v)  # FAULT


@triton.jit
def unmasked_load(y, x, n, BLOCK: tl.constexpr, RIGHT: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < (n if RIGHT else n + BLOCK))  # FAULT
    tl.store(y + at, v * v, mask=at < n)


@triton.jit
def wrong_mask(y, x, n, BLOCK: tl.constexpr, RIGHT: tl.constexpr):
    """The mask of the columns alone: rows beyond the last are loaded."""
    r, c = tl.program_id(0) * 4 + tl.arange(0, 4), tl.arange(0, BLOCK)
    mask = (c[None, :] < n) & (r[:, None] < 6 if RIGHT else r[:, None] < 8)
    v = tl.load(x + r[:, None] * n + c[None, :], mask=mask, other=0.0)  # FAULT
    tl.store(y + r[:, None] * n + c[None, :], v, mask=(c[None, :] < n) & (r[:, None] < 6))


@triton.jit
def plain_add(y, x, BLOCK: tl.constexpr, RIGHT: tl.constexpr):
    """Two programs add to one tile without atomics."""
    at = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * BLOCK + at)
    old = tl.load(y + at, mask=at < (0 if RIGHT else BLOCK))  # FAULT
    if RIGHT:
        tl.atomic_add(y + at, v)
    else:
        tl.store(y + at, old + v)  # FAULT


@triton.jit
def overlapping_programs(y, x, BLOCK: tl.constexpr, RIGHT: tl.constexpr):
    """Tiles of neighbouring programs overlap by one element, with other values."""
    at = tl.program_id(0) * (BLOCK if RIGHT else BLOCK - 1) + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) + tl.program_id(0))  # FAULT


@triton.jit
def negative_offset(y, x, n, BLOCK: tl.constexpr, RIGHT: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at - 1, mask=(at < n) & (at > 0 if RIGHT else at >= 0), other=0.0)  # FAULT
    tl.store(y + at, v, mask=at < n)


@cuda.jit
def missing_syncthreads(y, x, right):
    kept = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    kept[t] = x[t]  # FAULT
    if right:
        cuda.syncthreads()
    y[t] = kept[127 - t]  # FAULT


@cuda.jit
def index_beyond(y, x, right):
    i = cuda.grid(1)
    if i < x.size + (0 if right else 1):
        y[i] = 2 * x[i]  # FAULT


@cuda.jit
def shared_unwritten(y, x, right):
    kept = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if right or t < x.size:
        kept[t] = x[t] if t < x.size else 0
    cuda.syncthreads()
    y[t] = kept[63 - t]  # FAULT


@cuda.jit
def barrier_in_branch(y, x, right):
    kept = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    kept[t] = x[t]
    if right or t < 16:
        cuda.syncthreads()  # FAULT
        y[t] = kept[t ^ 1]
    else:
        cuda.syncthreads()  # FAULT
        y[t] = -1
