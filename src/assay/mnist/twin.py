"""The same network in PyTorch alone, trained by autograd: the peer of the race, and the judge.

Weights go in and come out bit-equal, under the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F

from .layers.batchnorm2d import EPSILON
from .layers.training import loaded
from .model import Parameters


class Twin:
    """The phases of `Network`, by autograd. compiled: forward and loss through torch.compile."""

    def __init__(
        self,
        parameters: Mapping[str, torch.Tensor],
        *,
        device: str = "cpu",
        channels_last: bool = False,
        compiled: bool = False,
    ):
        self.device = device
        self._format = torch.channels_last if channels_last else torch.contiguous_format
        self.parameters: Parameters = {
            name: self._placed(value.detach().clone().to(device)).requires_grad_()
            for name, value in parameters.items()
        }
        self._dtype = next(iter(self.parameters.values())).dtype
        self._loss: Any = torch.compile(loss_of) if compiled else loss_of
        self._last: torch.Tensor | None = None

    def _placed(self, value: torch.Tensor) -> torch.Tensor:
        return value.contiguous(memory_format=self._format) if value.dim() == 4 else value

    @property
    def gradients(self) -> Parameters:
        """Of the last `backward`."""
        return {n: p.grad for n, p in self.parameters.items() if p.grad is not None}

    def load(
        self, images: torch.Tensor, labels: torch.Tensor, order: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Network.load`."""
        unit = torch.ones(1, dtype=self._dtype, device=self.device)
        x, y = loaded(images, labels, order, unit)
        return self._placed(x), y

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return logits_of(self.parameters, x)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The mean loss, detached."""
        self._last = self._loss(self.parameters, x, labels)
        assert self._last is not None
        return self._last.detach()

    def backward(self) -> Parameters:
        """The gradients; those of earlier steps are added to, unless `zero` came between."""
        assert self._last is not None, "forward comes first"
        self._last.backward()
        return self.gradients

    def update(self, rate: float) -> None:
        with torch.no_grad():
            for value in self.parameters.values():
                assert value.grad is not None
                value.sub_(value.grad, alpha=rate)

    def zero(self) -> None:
        for value in self.parameters.values():
            value.grad = None


def logits_of(p: Mapping[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """(b, classes) of images (b, 1, side, side), in plain PyTorch."""
    for i in ("1", "2"):
        x = F.conv2d(x, p[f"conv{i}.weight"], p[f"conv{i}.bias"], padding=1)
        x = F.batch_norm(x, None, None, p[f"bn{i}.weight"], p[f"bn{i}.bias"], True, 0.0, EPSILON)
        x = F.max_pool2d(F.relu(x), 2)
    x = F.relu(F.linear(x.flatten(1), p["fc1.weight"], p["fc1.bias"]))
    return F.linear(x, p["fc2.weight"], p["fc2.bias"])


def loss_of(p: Mapping[str, torch.Tensor], x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits_of(p, x), labels)


def from_torch(parameters: Mapping[str, torch.Tensor]) -> Parameters:
    """Weights of a twin, or a state_dict of these names, as ours: contiguous, the same bits."""
    return {n: v.detach().cpu().contiguous().clone() for n, v in parameters.items()}
