"""How far a poor eager was off: by size of outputs, in powers of two, and beside the largest."""

from __future__ import annotations

import torch

from .perturb import ROUNDOFF

BINADES = 2304
"""Powers of two that a float64 can be near, subnormals included."""
SPREAD = 1024
"""Copies of such a table on a GPU, where all elements of one size would queue for one entry."""
MOST_RAISED = 2.0**-10
"""Most, as a share of the largest output beside it, or one unit roundoff where that is more
(bfloat16): an intermediate result of that size was rounded once."""
COARSE = 2.0
"""How many times as far as eager beside the same largest output; but never more than that share of
the largest output of all."""
BESIDE = 64
"""Outputs that lie beside one another: a row, or as many of short rows. A row that stands far above
the others has larger intermediate results, and excuses nothing there."""
Compared = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Eager's output, the truth and the allowance."""


def needed(compared: Compared | None, like: torch.Tensor, times: float) -> torch.Tensor:
    """`times` the worst share of the allowance among outputs of each size, by powers of two.

    compared: None where nothing can be said. like: a tensor of the device of the table.
    """
    if compared is None:
        return torch.ones(BINADES, device=like.device, dtype=torch.float64)
    out, truth, allowed = compared
    rows = 1 if truth.device.type == "cpu" else SPREAD
    needs = torch.ones(rows * BINADES, device=truth.device, dtype=torch.float64)
    share = (out.to(truth.dtype) - truth).abs().div_(allowed).nan_to_num_(0.0, 0.0, 0.0)
    at = binade(truth.abs()).clamp_(0, BINADES - 1).reshape(-1)
    at += torch.arange(at.numel(), device=at.device).remainder_(rows).mul_(BINADES)
    needs.scatter_reduce_(0, at, times * share.reshape(-1), "amax")
    own = needs.view(rows, BINADES).amax(0)
    found = own.clone()  # the neighbours too: the element itself may have been lucky
    torch.maximum(found[1:], own[:-1], out=found[1:])
    torch.maximum(found[:-1], own[1:], out=found[:-1])
    return found.to(like.device)


def binade(size: torch.Tensor) -> torch.Tensor:
    """The power of two below each size, as an index."""
    return torch.frexp(size.nan_to_num(0.0, 0.0, 0.0)).exponent.long().add_(BINADES // 2)


def of_largest(dtype: torch.dtype) -> float:
    """What one rounding of an intermediate result as large as an output may cost, of that size."""
    return max(MOST_RAISED, ROUNDOFF[dtype])


def coarseness(compared: Compared | None, dtype: torch.dtype) -> float:
    """By how much eager's own error goes beyond that, of the largest output beside it: twice that
    is allowed, since a kernel meets its worst elsewhere. 1 where it does not."""
    if compared is None or not compared[1].numel():
        return 1.0
    out, truth, _ = compared
    off = largest_beside((out.to(truth.dtype) - truth).abs())
    worst = (off / largest_beside(truth.abs())).nan_to_num_(0.0, 0.0, 0.0).amax()
    return max(1.0, COARSE * float(worst) / of_largest(dtype))


def largest_beside(size: torch.Tensor) -> torch.Tensor:
    """The largest finite one of the row of each, or of as many last dimensions as hold BESIDE."""
    finite, first = size.nan_to_num(0.0, 0.0, 0.0), size.dim()
    if not size.numel():
        return finite
    while first and finite[(0,) * first].numel() < BESIDE:
        first -= 1
    return finite.amax(tuple(range(first, size.dim())), keepdim=True) if size.dim() else finite
