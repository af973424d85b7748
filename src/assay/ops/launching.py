"""What the launchers of several operators share: sizes of grids, and dtypes that a way lacks."""

from __future__ import annotations


def blocks(n: int, tile: int) -> int:
    """How many tiles cover n elements."""
    return (n + tile - 1) // tile


def tile_of(x, block: int, unroll: int = 1) -> int:
    """Elements that a block of `block` threads moves, each thread `unroll` vectors of 16 bytes."""
    return block * unroll * (16 // x.element_size())


def numba_has(dtype):
    return dtype != "bfloat16" or "Numba's arrays have no bfloat16"


def numpy_has(dtype):
    return dtype != "bfloat16" or "NumPy has no bfloat16"
