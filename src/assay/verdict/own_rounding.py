"""What a reference's own arithmetic costs in float64, where no wider truth shows it.

Eager is the truth itself there, and log(1 + 0.004) has lost digits in both. In float32 the same
operations are as far off in units of its roundoff, and there float64 is the truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from ..errors import OpError
from ..op import Op
from .perturb import ROUNDOFF, nudge, perturb
from .reference import clone, default_float64, outputs_of, widen

SHARE = 2 * ROUNDOFF[torch.float64] / ROUNDOFF[torch.float32]
"""Twice: the truth is off as far as what is held against it, and may be to the other side."""


def of_float32(
    op: Op, inputs: Sequence[Any], truth: Sequence[torch.Tensor], again: Iterable[int], most: int
) -> Iterator[list[torch.Tensor]]:
    """Outputs as far from the truth as eager's in float32 are from theirs, in proportion.

    again: draws of inputs moved a little, of which the same is asked: of few elements those that
    cancel decide, and float32 may be lucky on them. None for inputs that the reference refuses, or
    of more than `most` elements: it is done on the CPU, where a reference that leaves its tensors
    for such inputs raises, and doesn't cost the process its context.
    """
    if sum(x.numel() for x in inputs if isinstance(x, torch.Tensor)) > most:
        return
    narrow = [_narrowed(x) for x in inputs]
    for given in (narrow, *(perturb(narrow, draw, nudge) for draw in again)):
        try:
            with torch.no_grad(), default_float64():
                right = outputs_of(op, [widen(x) for x in given])
            with torch.no_grad():
                eager = outputs_of(op, [clone(x) for x in given])
        except OpError:
            continue
        yield [_moved(*three) for three in zip(truth, right, eager)]


def _moved(truth: torch.Tensor, right: torch.Tensor, eager: torch.Tensor) -> torch.Tensor:
    """The truth, moved by what float32 is off; what is not finite there says nothing."""
    if truth.dtype is not torch.float64 or not right.shape == eager.shape == truth.shape:
        return truth
    error = (eager.double() - right).nan_to_num(0.0, 0.0, 0.0)
    return truth + error.to(truth.device) * SHARE


def _narrowed(value: Any) -> Any:
    """On the CPU, float64 in float32."""
    if not isinstance(value, torch.Tensor):
        return value
    here = value.cpu()
    return here.float() if here.dtype is torch.float64 else here
