"""How far eager was off among outputs of each size, by powers of two."""

from __future__ import annotations

import torch

BINADES = 2304
"""Powers of two that a float64 can be near, subnormals included."""
SPREAD = 1024
"""Copies of such a table on a GPU, where all elements of one size would queue for one entry."""
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
