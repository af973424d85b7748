"""Where an element of a tensor lies: strides of a layout, index to offset and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...errors import AssayError

NHWC = (0, 2, 3, 1)
"""The order in which a channels-last tensor of (N, C, H, W) lies, slowest dimension first."""


def strides(shape: Sequence[int], order: Sequence[int] | None = None) -> tuple[int, ...]:
    """Elements from one index to the next, by dimension.

    order: the dimensions from the slowest to the fastest; default as they are (NCHW, contiguous).
    Raises AssayError where it does not name every dimension once.
    """
    order = tuple(range(len(shape))) if order is None else tuple(order)
    if sorted(order) != list(range(len(shape))):
        raise AssayError(f"order {order} of {len(shape)} dimensions: name each once")
    made, step = [0] * len(shape), 1
    for dimension in reversed(order):
        made[dimension] = step
        step *= shape[dimension]
    return tuple(made)


def offset(index: Sequence[int], steps: Sequence[int]) -> int:
    """Elements before that one: sum of index x stride."""
    return sum(i * step for i, step in zip(index, steps, strict=True))


def index(number: int, shape: Sequence[int], order: Sequence[int] | None = None) -> tuple[int, ...]:
    """The index whose offset in that layout is `number`. Raises AssayError beyond the tensor."""
    if not 0 <= number < math.prod(shape):
        raise AssayError(f"offset {number} of a tensor of {math.prod(shape)} elements")
    steps = strides(shape, order)
    return tuple(number // step % size for size, step in zip(shape, steps, strict=True))
