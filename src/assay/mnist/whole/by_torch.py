"""The twin's whole step in PyTorch: eager or compiled, either layout, with or without a graph.

Loading is part of what is compiled. TF32 is on for convolutions and linear layers, cuDNN tries its
algorithms, the optimizer is one fused kernel; gradients are made anew, so nothing is set to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F

from ..agreement import tensor_cores
from ..layers.training import DEVIATION, MEAN
from ..model import Parameters
from ..twin import logits_of
from .bench import BURST, Course, captured, wait


def loss_of(
    p: Mapping[str, torch.Tensor],
    images: torch.Tensor,
    labels: torch.Tensor,
    at: torch.Tensor,
    channels_last: bool,
    smooth: float,
) -> torch.Tensor:
    """The mean loss of the digits `at` (b,), chosen and normalised here."""
    x = ((images[at].float() / 255 - MEAN) / DEVIATION)[:, None]
    if channels_last:
        x = x.contiguous(memory_format=torch.channels_last)
    return F.cross_entropy(logits_of(p, x), labels[at].long(), label_smoothing=smooth)


def compiled(mode: str) -> Any:
    """`loss_of`, compiled for the sizes it meets.

    A copy with a code object of its own, since TorchDynamo keeps what it compiled by code object:
    peers of other sizes and layouts would else count as recompilations, and be made dynamic.
    """
    copy = FunctionType(loss_of.__code__.replace(), loss_of.__globals__, loss_of.__name__)
    return torch.compile(copy, mode=mode, dynamic=False)


class TorchSteps:
    """Bursts of the twin's training steps."""

    def __init__(
        self,
        parameters: Mapping[str, torch.Tensor],
        course: Course,
        *,
        mode: str | None = None,
        channels_last: bool = False,
        graph: bool = False,
        half: bool = False,
        smooth: float = 0.0,
        optimizer: Mapping[str, Any] | None = None,
    ):
        """mode: None is eager, else one of torch.compile's. half: bf16 by autocast."""
        tensor_cores()
        device = course.images.device
        self._channels_last, self._half, self._smooth = channels_last, half, smooth
        self.course, self.device = course, str(device)
        self.parameters: Parameters = {
            name: self._placed(value.detach().clone().to(device)).requires_grad_()
            for name, value in parameters.items()
        }
        self._given = {n: v.detach().clone() for n, v in self.parameters.items()}
        self._loss: Any = loss_of if mode is None else compiled(mode)
        self.optimizer = torch.optim.SGD(
            self.parameters.values(), **(optimizer or {"lr": course.rate}), fused=True
        )
        self.losses = torch.zeros(BURST, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None
        if graph:
            self._graph = captured(self._burst)
        else:
            for _ in range(3):
                self._burst()
        self.reset()

    def _placed(self, value: torch.Tensor) -> torch.Tensor:
        last = self._channels_last and value.dim() == 4
        return value.contiguous(memory_format=torch.channels_last) if last else value

    def loss(self, at: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", torch.bfloat16, enabled=self._half):
            made: torch.Tensor = self._loss(
                self.parameters, self.course.images, self.course.labels, at,
                self._channels_last, self._smooth,
            )  # fmt: skip
        return made

    def step(self, at: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(at)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def _burst(self) -> None:
        for s in range(BURST):
            self.course.arrive(s)
            self.losses[s].copy_(self.step(self.course.part(s)))
            self.course.leave(s)

    @property
    def run(self) -> Callable[[], None]:
        """Launches a burst."""
        return self._burst if self._graph is None else self._graph.replay

    def reset(self, parameters: Mapping[str, torch.Tensor] | None = None) -> None:
        """Back to these parameters or those given at first, and to no momentum."""
        with torch.no_grad():
            for name, value in self.parameters.items():
                value.copy_((parameters or self._given)[name])
            for state in self.optimizer.state.values():
                for kept in state.values():
                    if isinstance(kept, torch.Tensor):
                        kept.zero_()
        wait(self.device)

    def gradients(self) -> Parameters:
        """Of the first step of the burst, at the parameters as they are."""
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.course.part(0)).backward()
        found = {n: v.grad.clone() for n, v in self.parameters.items() if v.grad is not None}
        if self._graph is None:
            self.optimizer.zero_grad(set_to_none=True)
        return found

    def load(self, images: Any, labels: Any, order: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Network.load`; for evaluation."""
        x = ((images[order].float() / 255 - MEAN) / DEVIATION)[:, None]
        return self._placed(x), labels

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, enabled=self._half):
            return logits_of(self.parameters, x)
