"""A failed verdict as a small picture: which elements were not written, are wrong, lie outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import torch

from .. import drawing
from ..drawing import NONE, SEVERAL, UNTOUCHED
from ..inputs import dtype_of
from ..types import Verdict
from .buffers import GUARD, outside, span
from .protocol import Ran, Shipped
from .shipped import Received

HEIGHT = 6
"""Rows of the grid at most; with its key a map has two lines more."""
Wrong = Callable[[Ran, int], Any]
"""Where an output of a run is wrong, as a tensor of bool."""


def pictured(verdict: Verdict, runs: list[Ran], wrong: Wrong) -> Verdict:
    """The verdict with its map, where one shows more than the words do."""
    if verdict.word == "not written":
        said = _unwritten(runs[0], runs[1])
    elif verdict.word == "wrong value":
        said = _wrong(runs, wrong)
    elif verdict.word == "wrote outside":
        said = _outside(runs)
    else:
        said = ""
    return msgspec.structs.replace(verdict, map=said) if said else verdict


def _drawn(
    name: str, shape: Any, codes: Any, key: str, marks: str, before: int | None = None
) -> str:
    """before: codes of what lies in front of the first element, of a tensor seen as a vector."""
    picture = drawing.grid(codes, height=HEIGHT)
    if before is not None:
        starts = tuple((at - before,) for (at,) in picture.starts)
        picture = replace(picture, starts=starts)
    head = f"{name} {list(shape)}; {drawing.span(picture)}"
    return "\n".join([head, key, *drawing.lines(picture, lambda number: marks[number])])


def _unwritten(one: Ran, two: Ran) -> str:
    """The first output in which both runs left their poison."""
    for index, pair in enumerate(zip(one.outputs, two.outputs)):
        if not _comparable(*pair):
            continue
        first, second = (Received(shipped) for shipped in pair)
        left = (first.holds(one.poison) & second.holds(two.poison)).numpy()
        if left.any():
            codes = np.where(left, UNTOUCHED, 0)
            key = ". not written, o written, x in part"
            return _drawn(f"output {index}", left.shape, codes, key, "o")
    return ""


def _comparable(one: Shipped, two: Shipped) -> bool:
    return one.fenced and two.fenced and one.shape == two.shape


def _wrong(runs: list[Ran], wrong: Wrong) -> str:
    """The first output that is wrong in some places and right in others."""
    for run in runs:
        for index in range(len(run.outputs)):
            bad = wrong(run, index).cpu().numpy()
            if bad.any() and not bad.all():
                key = "o right, ! wrong, + some wrong"
                return _drawn(f"output {index}", bad.shape, bad.astype(np.int64), key, "o!")
    return ""


def _outside(runs: list[Ran]) -> str:
    """The first tensor whose guards were changed, as a vector with what was written beside it."""
    for run in runs:
        for index, shipped in enumerate(run.outputs):
            if shipped.fenced and shipped.shape:
                said = _beside(f"output {index}", shipped, run.poison)
                if said:
                    return said
    return ""


def _beside(name: str, shipped: Shipped, poison: int) -> str:
    received, size = Received(shipped), dtype_of(shipped.dtype).itemsize
    count = span(shipped.shape, shipped.stride)
    end = shipped.offset + count * size
    own = end <= len(received.raw) - GUARD and shipped.offset >= GUARD
    if not own or shipped.offset > GUARD + 64 or len(received.raw) - GUARD > end + 64:
        return ""  # a view of something larger: what lies beside it belongs to that
    changed = received.raw != outside(poison)
    before, after = changed[:GUARD], changed[-GUARD:]
    if not bool(before.any()) and not bool(after.any()):
        return ""
    head = _elements(before.flip(0), size)[::-1]
    tail = _elements(after, size)
    body = received.raw[shipped.offset : end].view(count, size) == poison
    inner = np.where(body.all(-1).numpy(), UNTOUCHED, 0)
    codes = np.concatenate([head, inner, tail])
    key = "# written outside, o written, . not written"
    return _drawn(name, shipped.shape, codes, key, "o", before=len(head))


def _elements(changed: torch.Tensor, size: int) -> Any:
    """Codes of a guard's elements from the tensor on, up to the last one that was changed."""
    whole = changed[: len(changed) // size * size].view(-1, size).any(-1).numpy()
    last = int(whole.nonzero()[0].max()) + 1 if whole.any() else 0
    return np.where(whole[:last], SEVERAL, NONE)


def beyond(out: torch.Tensor, truth: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    """Where an output is further from the truth than it may be; a NaN or infinity has its place."""
    if out.shape != truth.shape:
        return torch.zeros(out.shape, dtype=torch.bool)
    if not (truth.is_floating_point() or truth.is_complex()):
        return out.cpu() != truth.cpu()
    value, wide = out.to(truth.device).to(truth.dtype), truth.dtype
    same = (value == truth) | (value == truth.to(out.dtype).to(wide))
    same |= value.isnan() & truth.isnan()
    return ~same & ~((value - truth).abs() <= allowed)
