"""How far a network's gradients and losses are from those of PyTorch, and what is allowed.

Of a gradient g and the truth t, the error is max|g - t| / max|t of the layer|. The layer, because a
bias in front of batchnorm has the gradient 0 and what is found of it is rounding alone: it is
measured by the gradient of the weights beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from .model import Parameters
from .twin import Twin

GRADIENT = {"float64": 1e-11, "float32": 1e-3, "tf32": 1e-2, "bf16": 1e-2}
"""Largest error of a gradient, by class of precision.

float32: eager itself was seen 1.5e-4 away at a batch of 64. Where two pixels of a window differ by
less than a rounding, the pooling chooses another than in float64, and so does its gradient.
"""
LOSS = 0.02
"""Largest difference of two loss curves, of their windows' means, as a share of the first loss."""
WINDOW = 10


def tensor_cores() -> None:
    """Lets PyTorch use TF32 everywhere, and cuDNN try its algorithms, in this process."""
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True


@dataclass(frozen=True)
class Agreement:
    """The error of one parameter's gradient, and whether it is allowed."""

    name: str
    error: float
    allowed: float

    @property
    def holds(self) -> bool:
        return bool(self.error <= self.allowed)  # not for a NaN


def truth(
    parameters: Mapping[str, torch.Tensor],
    images: torch.Tensor,
    labels: torch.Tensor,
    order: torch.Tensor,
) -> Parameters:
    """The gradients by autograd in float64 on the CPU, of these digits and parameters."""
    twin = Twin({name: value.detach().cpu().double() for name, value in parameters.items()})
    twin.forward(*twin.load(images.cpu(), labels.cpu(), order.cpu()))
    return dict(twin.backward())


def gradients(
    found: Mapping[str, torch.Tensor], true: Mapping[str, torch.Tensor], precision: str
) -> list[Agreement]:
    """The agreement of every parameter's gradient, in the order of the truth."""
    largest: dict[str, float] = {}
    for name, t in true.items():
        layer = name.partition(".")[0]
        largest[layer] = max(largest.get(layer, 0.0), float(t.abs().max()))
    made = []
    for name, t in true.items():
        error = float((found[name].detach().cpu().double() - t).abs().max())
        made.append(Agreement(name, error / largest[name.partition(".")[0]], GRADIENT[precision]))
    return made


def curves(found: Sequence[float], true: Sequence[float]) -> float:
    """Largest difference of the means of WINDOW losses, as a share of the first true loss."""
    if len(found) != len(true) or len(true) < WINDOW:
        raise ValueError(f"{len(found)} and {len(true)} losses; two curves of at least {WINDOW}")
    last = len(true) - WINDOW + 1
    differences = [
        abs(sum(found[i : i + WINDOW]) - sum(true[i : i + WINDOW])) / WINDOW for i in range(last)
    ]
    return max(differences, key=lambda d: float("inf") if d != d else d) / true[0]
