"""What several operators share: sizes of grids, dtypes that a way lacks, wide sums in formulas."""

from __future__ import annotations

import functools

import torch

from assay.errors import NotSupported
from assay.inputs import dtype_name


def blocks(n: int, tile: int) -> int:
    """How many tiles cover n elements."""
    return (n + tile - 1) // tile


def tile_of(x, block: int, unroll: int = 1) -> int:
    """Elements that a block of `block` threads moves, each thread `unroll` vectors of 16 bytes."""
    return block * unroll * (16 // x.element_size())


def multiprocessors(x) -> int:
    """Of the GPU that a tensor is on; 132, those of an H100, where it is on none."""
    return _multiprocessors(x.device.index or 0) if x.device.type == "cuda" else 132


@functools.cache
def _multiprocessors(index: int) -> int:
    return torch.cuda.get_device_properties(index).multi_processor_count


def numba_has(dtype):
    return dtype != "bfloat16" or "Numba's arrays have no bfloat16"


def numpy_has(dtype):
    return dtype != "bfloat16" or "NumPy has no bfloat16"


FLOATS = ("float32", "float64", "float16", "bfloat16")
INCLUDE = "../../include"
"""Where floats.h lies, from an operator's folder: for the launchers of `cpp`."""


def function_for(k, name, x, dtypes=FLOATS):
    """`name_float32` of a C++ library for a tensor in float32.

    Raises NotSupported if its dtype is not among those that the library has functions for.
    """
    given = dtype_name(x.dtype)
    if given not in dtypes:
        raise NotSupported(f"{given}: supported: {', '.join(dtypes)}")
    return getattr(k, f"{name}_{given}")


def accumulator(x) -> torch.dtype:
    """What kernels compute in: `assay::accumulator` of include/assay.cuh."""
    return torch.float64 if x.dtype is torch.float64 else torch.float32


def widened(*tensors):
    """These in float32, or float64 as they are.

    For the formulas of gradients: their sums cancel, and of products rounded to 16 bits the digits
    that stay would be noise. The kernels compute so too.
    """
    return [x.to(torch.promote_types(x.dtype, torch.float32)) for x in tensors]
