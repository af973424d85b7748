"""Our whole steps: the fast step in a graph or launch by launch, and the naive layers in one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..fast.network import Fast
from ..fast.step import Digits
from ..model import Parameters
from ..network import Network
from .bench import BURST, Course, captured, wait


class FastSteps:
    """Bursts of the fast step."""

    def __init__(
        self,
        parameters: Mapping[str, torch.Tensor],
        course: Course,
        *,
        graph: bool = True,
        early: bool = True,
    ):
        """early: kernels may start before the one in front of them has ended."""
        device = course.images.device
        self.net = Fast(parameters, device=str(device), early=early)
        self.course, self.device = course, str(device)
        self.parameters = self.net.parameters
        self._given = self.net.flat.clone()
        self._step = self.net.of_batch(course.batch)
        self._digits = Digits(course.images, course.labels, course.order, course.batch)
        self._now = torch.zeros(1, dtype=torch.int32, device=device)
        self.losses = torch.zeros(BURST, device=device)
        self._rates = torch.full((BURST,), course.rate, device=device)
        self._graph = captured(self._burst) if graph else None
        if self._graph is None:
            self._burst()
        self.reset()

    def _burst(self) -> None:
        self._now.zero_()
        for s in range(BURST):
            self.course.arrive(s)
            follows = s > 0 and self.course.feed is None  # else a copy lies between
            self._step.forward(self._digits, self._now, follows=follows)
            self._step.backward(self._digits, self._now, 1)
            self._step.finish(self._now, 1, self.losses, self._rates, keep=False)
            self.course.leave(s)

    @property
    def run(self) -> Callable[[], None]:
        """Launches a burst."""
        return self._burst if self._graph is None else self._graph.replay

    def reset(self) -> None:
        """Back to the parameters given."""
        self.net.flat.copy_(self._given)
        wait(self.device)

    def gradients(self) -> Parameters:
        """Of the first step of the burst, at the parameters as they are."""
        digits, labels = self.net.load(
            self.course.images, self.course.labels, self.course.part(0).contiguous()
        )
        self.net.forward(digits, labels)
        return {name: g.clone() for name, g in self.net.backward().items()}

    def load(self, images: Any, labels: Any, order: Any) -> tuple[Any, torch.Tensor]:
        return self.net.load(images, labels, order)

    def logits(self, x: Any) -> torch.Tensor:
        return self.net.logits(x)


class LayerSteps:
    """Bursts of a network whose layers are single kernels of one back end."""

    def __init__(
        self,
        parameters: Mapping[str, torch.Tensor],
        course: Course,
        backend: str,
        *,
        graph: bool = True,
    ):
        self.net, self.course = Network(parameters, backend), course
        self.device, self.parameters = self.net.device, self.net.parameters
        self._given = {n: v.clone() for n, v in self.parameters.items()}
        self.losses = torch.zeros(BURST, device=course.images.device)
        self._graph = captured(self._burst, warm=1) if graph else None
        if self._graph is None:
            self._burst()
        self.reset()

    def _burst(self) -> None:
        c = self.course
        for s in range(BURST):
            c.arrive(s)
            x, y = self.net.load(c.images, c.labels, c.part(s))
            self.losses[s].copy_(self.net.forward(x, y))
            self.net.backward()
            self.net.update(c.rate)
            c.leave(s)

    @property
    def run(self) -> Callable[[], None]:
        """Launches a burst."""
        return self._burst if self._graph is None else self._graph.replay

    def reset(self) -> None:
        """Back to the parameters given."""
        for name, value in self.parameters.items():
            value.copy_(self._given[name])
        wait(self.device)

    def gradients(self) -> Parameters:
        """Of the first step of the burst, at the parameters as they are."""
        c = self.course
        self.net.forward(*self.net.load(c.images, c.labels, c.part(0)))
        return {name: g.clone() for name, g in self.net.backward().items()}

    def load(self, images: Any, labels: Any, order: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return self.net.load(images, labels, order)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        return self.net.logits(x)
