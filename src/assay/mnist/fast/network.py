"""The back end `fast`: the phases of `Network` by the kernels of the fast step, in tf32.

Choosing and normalising the digits is part of the first kernels, so `load` only says which they
are. `forward` makes the gradients of the head too, while its sums are at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ...errors import AssayError
from ..model import Parameters
from .step import Digits, Step, flattened, loaded, views

NO_GPU = (
    "--backend fast: no GPU here to train on; its kernels are judged without one by their compiled "
    "code: pytest tests/test_mnist_fast.py"
)


class Fast:
    """A network in training by the fast step, one launch after another; whole/ has it in graphs.

    The parameters are views of one tensor, and change in place.
    """

    def __init__(
        self,
        parameters: Mapping[str, torch.Tensor],
        *,
        device: str = "cuda:0",
        watch: Any = None,
        early: bool = True,
    ):
        """early: see `Step`.

        watch: an `assay.simt.Watch` that runs the kernels on the CPU, where there is no GPU.

        Raises AssayError for other sizes than those of the notes, or without a GPU.
        """
        if watch is None and not torch.cuda.is_available():
            raise AssayError(NO_GPU)
        self.device = "cpu" if watch is not None else device
        self._handle, self._processors = loaded(self.device, watch)
        self._early = early
        self.flat = flattened(parameters, self.device)
        self._flat_gradients = torch.zeros_like(self.flat)
        self.parameters: Parameters = views(self.flat)
        self.gradients: Parameters = views(self._flat_gradients)
        self._steps: dict[int, Step] = {}
        self._step = torch.zeros(1, dtype=torch.int32, device=self.device)
        self._losses = torch.zeros(1, device=self.device)
        self._rates = torch.zeros(1, device=self.device)
        self._rate = 0.0
        self._digits: Digits | None = None

    def of_batch(self, batch: int) -> Step:
        """The step of a batch size, made once."""
        if batch not in self._steps:
            self._steps[batch] = Step(
                *(self._handle, self.flat, self._flat_gradients, batch, self._processors),
                early=self._early,
            )
        return self._steps[batch]

    def load(
        self, images: torch.Tensor, labels: torch.Tensor, order: torch.Tensor
    ) -> tuple[Digits, torch.Tensor]:
        """Which digits the next step takes, and all labels; see `Digits`."""
        return Digits(images, labels, order, len(order)), labels

    def logits(self, x: Digits) -> torch.Tensor:
        """(b, classes) of the digits."""
        step = self.of_batch(x.batch)
        step.forward(x, self._step, train=False)
        return step.logits

    def forward(self, x: Digits, labels: torch.Tensor) -> torch.Tensor:
        """The mean loss, a tensor without dimensions; it is not read here."""
        step = self._last(x)
        step.forward(x, self._step)
        return step.loss()

    def _last(self, x: Digits) -> Step:
        self._digits = x
        return self.of_batch(x.batch)

    def backward(self) -> Parameters:
        """The gradient of every parameter, of the last `forward`."""
        assert self._digits is not None, "forward comes first"
        step = self.of_batch(self._digits.batch)
        step.backward(self._digits, self._step, 0)
        step.finish(self._step, 0, self._losses, self._rates, keep=True)
        return self.gradients

    def update(self, rate: float) -> None:
        """w <- w - rate g, for every parameter."""
        assert self._digits is not None, "backward comes first"
        self.set_rate(rate)
        self.of_batch(self._digits.batch).update(self._rates)

    def set_rate(self, rate: float) -> None:
        if rate != self._rate:
            self._rates.fill_(rate)
            self._rate = rate

    def zero(self) -> None:
        """Nothing: gradients are overwritten."""

    def whole(self, x: Digits) -> torch.Tensor:
        """One whole step as seven launches, by the rate set; the loss (1,), where it is left.

        The weights are updated as their gradients are summed, so no gradient is kept.
        """
        step = self._last(x)
        step.forward(x, self._step)
        step.backward(x, self._step, 0)
        step.finish(self._step, 0, self._losses, self._rates, keep=False)
        return self._losses
