"""Which choice is for given inputs: of the same dtypes, the one whose shapes are nearest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..types import Input
from .choosing import Choice

Form = tuple[str, tuple[int, ...], tuple[int, ...]]
"""Dtype, shape and strides of a tensor; of anything else its text and two empty tuples."""


def form(one: Input) -> Form:
    """What of an input decides."""
    return (one.dtype or one.text, one.shape, one.stride)


def nearest(kept: Iterable[Choice], inputs: Sequence[Form]) -> tuple[Choice | None, bool]:
    """The choice for inputs of these forms, and whether it was timed on the very same ones.

    None where no choice has as many inputs of the same dtypes and dimensions. The distance is the
    sum of |log2| of the ratios of all sizes: a factor of two in a dimension is 1.
    """
    best, least = None, math.inf
    for choice in kept:
        apart = distance([form(one) for one in choice.inputs], inputs)
        if apart < least:
            best, least = choice, apart
    same = best is not None and [form(one) for one in best.inputs] == list(inputs)
    return best, same


def distance(one: Sequence[Form], other: Sequence[Form]) -> float:
    """How far the shapes of two sets of inputs are apart; infinite where they can't be compared."""
    if len(one) != len(other):
        return math.inf
    total = 0.0
    for (kind, shape, _), (other_kind, other_shape, _) in zip(one, other):
        if kind != other_kind or len(shape) != len(other_shape):
            return math.inf
        total += sum(abs(math.log2(max(a, 1) / max(b, 1))) for a, b in zip(shape, other_shape))
    return total
