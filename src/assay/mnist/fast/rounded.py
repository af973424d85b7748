"""The network as tensor cores see it in tf32: autograd in float64, operands rounded to 10 bits.

Where a value is near a kink (a relu at 0, two pixels of a pooling window alike) rounding takes the
other side, and its gradient with it. So a gradient in tf32 is measured twice: against this, which
takes the same sides, and against float64, beside what this itself is off there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F

from ..layers.batchnorm2d import EPSILON
from ..layers.training import loaded
from ..model import Parameters


class _Rounded(torch.autograd.Function):
    """Halves away from zero, as cvt.rna.tf32 does; the gradient passes as it is."""

    @staticmethod
    def forward(ctx: Any, v: torch.Tensor) -> torch.Tensor:
        bits = v.float().contiguous().view(torch.int32)
        return (bits + 0x1000 & ~0x1FFF).view(torch.float32).double()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0]


def rounded(v: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = _Rounded.apply(v)
    return made


def truth(
    parameters: Mapping[str, torch.Tensor],
    images: torch.Tensor,
    labels: torch.Tensor,
    order: torch.Tensor,
) -> tuple[float, Parameters]:
    """The loss and the gradients, float64 on the CPU; see `agreement.truth`."""
    p = {n: v.detach().cpu().double().requires_grad_() for n, v in parameters.items()}
    unit = torch.ones(1)
    x, y = loaded(images.cpu(), labels.cpu(), order.cpu(), unit)
    x = rounded(x)
    for i in ("1", "2"):
        x = F.conv2d(x, rounded(p[f"conv{i}.weight"]), p[f"conv{i}.bias"], padding=1)
        x = F.batch_norm(x, None, None, p[f"bn{i}.weight"], p[f"bn{i}.bias"], True, 0.0, EPSILON)
        x = rounded(F.max_pool2d(F.relu(x), 2))
    x = F.relu(F.linear(x.flatten(1), rounded(p["fc1.weight"]), p["fc1.bias"]))
    loss = F.cross_entropy(F.linear(x, p["fc2.weight"], p["fc2.bias"]), y)
    loss.backward()
    return loss.item(), {n: v.grad for n, v in p.items() if v.grad is not None}
