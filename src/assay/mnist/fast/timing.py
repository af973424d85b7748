"""Seconds of each kernel of the fast step on a GPU: twenty launches of it alone in a CUDA graph."""

from __future__ import annotations

from typing import Any

import torch

from .network import Fast
from .step import Step

REPEATED = 20


class _Noted:
    """In the place of a step's kernels: notes each launch instead of making it."""

    def __init__(self, kernels: Any):
        self.kernels = kernels
        self.noted: list[tuple[str, Any, Any]] = []

    def __getitem__(self, name: str) -> Any:
        def configured(**shape: Any) -> Any:
            alone = shape | {"early": False}  # it is timed behind copies of itself
            return lambda *args: self.noted.append((name, alone, args))

        return configured


def launches(step: Step, digits: Any, now: torch.Tensor) -> list[tuple[str, Any, Any]]:
    """(name, grid and block, arguments) of each launch of a step that keeps its gradients."""
    noted = _Noted(step.kernels)
    step.kernels = noted
    try:
        floats = torch.zeros(1, device=step.flat.device)
        step.forward(digits, now)
        step.backward(digits, now, 0)
        step.finish(now, 0, floats, floats, keep=True)
    finally:
        step.kernels = noted.kernels
    return noted.noted


def kernel_seconds(net: Fast, digits: Any, rounds: int = 15) -> dict[str, float]:
    """Median seconds of each kernel, its data in L2 as far as it fits there.

    Launches follow one another in a graph, so a node's own time (about 1 us) is in it, and the
    overlap with its neighbours in a real step is not.
    """
    from ..whole.bench import captured, timed

    step, now = net.of_batch(digits.batch), torch.zeros(1, dtype=torch.int32, device=net.device)
    step.forward(digits, now)
    step.backward(digits, now, 0)
    found = {}
    for name, shape, args in launches(step, digits, now):
        launch = step.kernels[name](**shape)

        def run(launch: Any = launch, args: Any = args) -> None:
            for _ in range(REPEATED):
                launch(*args)

        graph = captured(run, warm=1)
        graph.replay()
        samples = sorted(timed(graph.replay) / REPEATED for _ in range(rounds))
        found[name] = samples[rounds // 2]
    return found
