"""Where a step's time goes: seconds of every layer, forward and backward, each waited for.

Each kernel is waited for by itself, so the sum is more than a step takes where launches overlap:
shares are what to read. On a GPU every call also has a range of NVTX, for Nsight Systems.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from ..clock.statistics import interval
from ..errors import AssayError
from .data import Data
from .network import Network
from .train import order

WARM = 3


@dataclass(frozen=True)
class Spent:
    """Seconds of one kernel of a step: the layer's name, the Op, and each step's sample."""

    layer: str
    op: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> tuple[float, float, float]:
        """(low, median, high), 95 %."""
        return interval(self.seconds)


def profile(net: Network, data: Data, *, batch: int, steps: int, seed: int = 0) -> list[Spent]:
    """Seconds of every kernel in `steps` steps, in the order of a step; the network is trained.

    Raises AssayError for a batch that the digits do not fill, or fewer than 10 steps.
    """
    if batch > len(data.train) or steps < 10:
        raise AssayError(
            f"--batch {batch} --steps {steps}: there are {len(data.train)} training digits, and "
            "fewer than 10 steps tell nothing"
        )
    images = torch.from_numpy(data.train.images.copy()).to(net.device)
    labels = torch.from_numpy(data.train.labels.copy()).to(net.device)
    samples: dict[tuple[str, str], list[float]] = {}

    @contextmanager
    def around(layer: str, op: str) -> Iterator[None]:
        with _range(net.device, f"{layer} {op}"):
            begun = _now(net.device)
            yield
            passed = _now(net.device) - begun
        step[layer, op] = step.get((layer, op), 0.0) + passed  # an update has many tensors

    net.around = around
    try:
        for number in range(WARM + steps):
            step: dict[tuple[str, str], float] = {}
            at = order(seed, number, len(data.train))[:batch].contiguous().to(net.device)
            net.forward(*net.load(images, labels, at))
            net.backward()
            net.update(0.05)
            for key, seconds in step.items() if number >= WARM else ():
                samples.setdefault(key, []).append(seconds)
    finally:
        net.around = None
    return [Spent(layer, op, tuple(seconds)) for (layer, op), seconds in samples.items()]


@contextmanager
def _range(device: str, name: str) -> Iterator[None]:
    if not device.startswith("cuda"):
        yield
        return
    torch.cuda.nvtx.range_push(name)
    try:
        yield
    finally:
        torch.cuda.nvtx.range_pop()


def _now(device: Any) -> float:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
    return time.perf_counter()
