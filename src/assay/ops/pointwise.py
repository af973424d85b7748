"""Launching pointwise kernels: F of one to three tensors of one shape, in CUDA and in Triton."""

from __future__ import annotations

from .launching import blocks, tile_of

BLOCK = 128
"""On an H200, GELU in bfloat16 moves 0.99 of a copy by blocks of 128 and 0.96 by blocks of 256."""


def cuda_vectorised(k, functor, y, *inputs, unroll):
    """Fills y with `assay::mapK` of include/elementwise.cuh over the functor of the source `k`."""
    n = y.numel()
    if n:
        kernel = k[f"assay::map{len(inputs)}<{functor}, {k.type(y)}, {BLOCK}, {unroll}>"]
        kernel(grid=blocks(n, tile_of(y, BLOCK, unroll)), block=BLOCK, shared=0)(y, *inputs, n)


def cuda_naive(k, functor, y, *inputs):
    """Fills y with one thread an element."""
    n = y.numel()
    if n:
        kernel = k[f"assay::map{len(inputs)}_naive<{functor}, {k.type(y)}, {BLOCK}>"]
        kernel(grid=blocks(n, BLOCK), block=BLOCK, shared=0)(y, *inputs, n)


def triton_mapped(function, y, *inputs, block):
    """Fills y with a `@triton.jit` function of one widened value an input."""
    from . import pointwise_triton as maps

    kernel = {1: maps.map1, 2: maps.map2, 3: maps.map3}[len(inputs)]
    n = y.numel()
    if n:
        kernel[(blocks(n, block),)](y, *inputs, n, function, block)
