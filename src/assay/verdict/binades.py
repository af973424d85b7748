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
BESIDE = 64
"""Outputs that lie beside one another: a row, or as many short rows as hold so many. A row that
stands far above the others has larger intermediate results, and excuses nothing there."""
Compared = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Eager's output, the truth and the allowance."""


def needed(compared: Compared | None, like: torch.Tensor, times: float) -> torch.Tensor:
    """`times` the worst share of the allowance among outputs of each size, by powers of two.

    compared: None where nothing can be said. like: a tensor of the device of the table.
    """
    if compared is None:
        return torch.ones(BINADES, device=like.device, dtype=torch.float64)
    out, truth, allowed = compared
    share = (out.to(truth.dtype) - truth).abs().div_(allowed).nan_to_num_(0.0, 0.0, 0.0)
    return _worst(truth.abs(), share.mul_(times), 1.0).to(like.device)


def missed(compared: Compared | None, like: torch.Tensor, times: float) -> torch.Tensor:
    """`times` the largest error in groups (`beside`) whose largest output is of each size."""
    if compared is None or not compared[1].numel():
        return torch.zeros(BINADES, device=like.device, dtype=torch.float64)
    out, truth, _ = compared
    off = beside((out.to(truth.dtype) - truth).abs()).mul_(times)
    return _worst(beside(truth.abs()), off, 0.0).to(like.device)


def _worst(sizes: torch.Tensor, values: torch.Tensor, least: float) -> torch.Tensor:
    """The largest value among those of each size and its neighbours', by powers of two.

    The neighbours too: the element itself may have been lucky.
    """
    rows = 1 if sizes.device.type == "cpu" else SPREAD
    table = torch.full((rows * BINADES,), least, device=sizes.device, dtype=torch.float64)
    at = binade(sizes).reshape(-1)
    at += torch.arange(at.numel(), device=at.device).remainder_(rows).mul_(BINADES)
    table.scatter_reduce_(0, at, values.reshape(-1).double(), "amax")
    own = table.view(rows, BINADES).amax(0)
    found = own.clone()
    torch.maximum(found[2:], own[1:-1], out=found[2:])
    torch.maximum(found[1:-1], own[2:], out=found[1:-1])
    return found


def binade(size: torch.Tensor) -> torch.Tensor:
    """The power of two below each size, as an index.

    0, and what is not finite, has index 0, which is nobody's neighbour: where the truth is 0 next
    to nothing is allowed, so that any error is many times that.
    """
    finite = size.nan_to_num(0.0, 0.0, 0.0)
    at = torch.frexp(finite).exponent.long().add_(BINADES // 2).clamp_(1, BINADES - 1)
    return at.mul_(finite != 0)


def of_largest(dtype: torch.dtype) -> float:
    """What one rounding of an intermediate result as large as an output may cost, of that size."""
    return max(MOST_RAISED, ROUNDOFF[dtype])


def beside(size: torch.Tensor) -> torch.Tensor:
    """The largest finite one of each group of outputs that lie beside one another, in order."""
    finite = size.nan_to_num(0.0, 0.0, 0.0).reshape(-1)
    if not finite.numel():
        return finite
    each = group_of(size)
    over = -finite.numel() % each
    if over:
        finite = torch.nn.functional.pad(finite, (0, over))
    return finite.view(-1, each).amax(1)


def group_of(size: torch.Tensor) -> int:
    """Outputs of a group: those of a row, or of as many short rows as hold BESIDE."""
    width = size.shape[-1] if size.dim() else 1
    return min(size.numel(), width * -(-BESIDE // width))


def spread_out(groups: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """What is known of each group, for each of its outputs."""
    if not like.numel():
        return torch.zeros_like(like)
    return groups.repeat_interleave(group_of(like))[: like.numel()].view(like.shape)
