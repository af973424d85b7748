"""histogram: y[b] = how many of x are b, for b from 0 to bins - 1.

Many threads count in one place, so each addition must be atomic: read, add and write with nothing
in between. A plain `y[b] = y[b] + 1` loses what another thread added meanwhile.

Atomics on one address wait for one another. cuda/privatised gives each block counters of its own in
shared memory, where they are nearer, and adds them to the result once.
"""

import torch

from assay.op import Op

from ..launching import blocks, multiprocessors


def reference(x, bins):
    counts = torch.zeros(bins, dtype=torch.int64, device=x.device)
    return counts.index_add(0, x, torch.ones_like(x, dtype=torch.int64))


def inputs(make, n, bins):
    # The sum of three dice: some bins are met far more often than others, as they mostly are.
    dice = [make.integers(n, low=0, high=(bins + 2) // 3, dtype="int32") for _ in range(3)]
    return dice[0] + dice[1] + dice[2], bins


histogram: Op = Op(
    "histogram",
    reference,
    inputs,
    shapes={"x": "n"},
    flops=lambda n: n,
    bytes=lambda n, bins: 4 * n + 8 * bins,
    outputs=lambda bins: [((bins,), "int64")],
    deterministic=True,
    cases=[
        dict(n=1000, bins=16),
        dict(n=10_007, bins=256),
        dict(n=100_003, bins=10_000),
        dict(n=1 << 22, bins=256),
    ],
)


@histogram.variant("eager/bincount")
def by_bincount(x, bins):
    """PyTorch's own; it has no form without values, which a reference needs."""
    return torch.bincount(x, minlength=bins)


SHARED = 8192
"""Counters of 4 bytes that a block has room for: 32 KB of shared memory."""
EACH = 4
"""Blocks at most on each multiprocessor: all that fit at once."""


@histogram.launcher("cuda/global", source="histogram.cu")
def by_cuda_global(k, y, x, bins):
    n = x.numel()
    y.zero_()
    if n:
        k["histogram_global"](grid=blocks(n, 256), block=256, shared=0)(y, x, n)


@histogram.launcher(
    "cuda/privatised",
    source="histogram.cu",
    when=lambda bins: bins <= SHARED or f"a block has room for {SHARED:,} counters",
)
def by_cuda_privatised(k, y, x, bins):
    n = x.numel()
    y.zero_()
    if n:
        grid = min(EACH * multiprocessors(x), blocks(n, 512 * 16))
        k["histogram_privatised"](grid=grid, block=512, shared=4 * bins)(y, x, n, bins)


@histogram.launcher("triton", knobs={"BLOCK": [1024]})
def by_triton(y, x, bins, BLOCK):
    from .histogram_triton import kernel

    n = x.numel()
    y.zero_()
    if n:
        kernel[(blocks(n, BLOCK),)](y, x, n, BLOCK)


@histogram.launcher("numba")
def by_numba(y, x, bins):
    from .histogram_numba import THREADS, kernel

    n = x.numel()
    y.zero_()
    if n:
        kernel[blocks(n, THREADS), THREADS](y, x)
