"""From granules of memory to the elements of a tensor, through its shape and strides."""

from __future__ import annotations

from typing import Any

import numpy as np

from .model import ELEMENT, FIELDS


def elements(
    cells: Any, shift: int, start: int, shape: Any, strides: Any, size: int, *, in_turn: bool
) -> Any:
    """What a launch did to each element: an array of ELEMENT in the tensor's shape.

    cells: the granules of its window, 1 << shift bytes each. start: bytes from the window's start
    to the first element. strides, size: in bytes.
    """
    made = np.zeros(tuple(shape), ELEMENT)
    if not made.size or not len(cells):
        return made
    at = np.full(tuple(shape), start, np.int64)
    for axis, (length, stride) in enumerate(zip(shape, strides)):
        along = np.arange(length, dtype=np.int64) * stride
        at += along.reshape(tuple(-1 if i == axis else 1 for i in range(len(shape))))
    first, last = at >> shift, (at + size - 1) >> shift
    most = int((last - first).max()) + 1
    parts = [cells[np.minimum(first + k, last)] for k in range(most)]
    for name in FIELDS:
        made[name] = parts[0][name]
        for part in parts[1:]:
            made[name] = np.maximum(made[name], part[name])
    wrote = [part["writes"] + part["atomics"] > 0 for part in parts]
    made["partly"] = np.logical_or.reduce(wrote) & ~np.logical_and.reduce(wrote)
    for names, order in (
        (("first_reader", "first_reading"), 1),
        (("last_reader", "last_reading"), -1),
        (("first_writer", "first_writing"), 1),
        (("last_writer", "last_writing"), -1),
    ):
        _who(made, parts[::order], *names)
    for count, first_name in (("readers", "first_reader"), ("writers", "first_writer")):
        _several(made, parts, count, first_name)
        if not in_turn:  # a change back to a block that was there before counts again
            made[count] = np.minimum(made[count], 2)
    return made


def _who(made: Any, parts: list[Any], block: str, thread: str) -> None:
    """Who touched the first (or, of reversed parts, the last) granule that anybody touched."""
    for part in parts:
        new = (made[block] == 0) & (part[block] > 0)
        made[block] = np.where(new, part[block], made[block])
        made[thread] = np.where(new, part[thread], made[thread])


def _several(made: Any, parts: list[Any], count: str, first: str) -> None:
    """Two blocks that each wrote a part of an element are two."""
    for part in parts[1:]:
        differ = (part[first] > 0) & (made[first] > 0) & (part[first] != made[first])
        made[count] = np.where(differ, np.maximum(made[count], 2), made[count])
