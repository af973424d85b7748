"""What all who race on a GPU share: the digits, the buffers that a graph reads, capture, timing.

BURST steps are one sample. They take the digits at `order`, a tensor that is filled before, and
leave their losses in `losses`; whoever can has all of them in one CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ...clock.graphs import capturing

BURST = 10
"""Steps of a sample."""
SPIN_CYCLES = 600_000
"""Of a busy wait in front of a sample, some 0.3 ms, behind which the host launches it."""


@dataclass(frozen=True)
class Course:
    """What is trained on: digits on the device, batch, rate, and where a burst finds its digits."""

    images: torch.Tensor
    labels: torch.Tensor
    batch: int
    rate: float
    order: torch.Tensor
    """(BURST * batch,) int64: filled before each burst, read by all."""
    feed: Any = None
    """What brings the digits of a burst from the host, step by step; None: they are all there."""

    def part(self, step: int) -> torch.Tensor:
        """The digits of one step of a burst, a view of `order`."""
        return self.order[step * self.batch : (step + 1) * self.batch]

    def arrive(self, step: int) -> None:
        """Called before each step of a burst: its digits are there for what is launched next."""
        if self.feed is not None:
            self.feed.arrive(step)

    def leave(self, step: int) -> None:
        """Called after each step: its digits may be overwritten."""
        if self.feed is not None:
            self.feed.leave(step)


def course(images: torch.Tensor, labels: torch.Tensor, batch: int, rate: float) -> Course:
    order = torch.zeros(BURST * batch, dtype=torch.int64, device=images.device)
    return Course(images, labels, batch, rate, order)


def captured(run: Callable[[], Any], warm: int = 3) -> torch.cuda.CUDAGraph:
    """A CUDA graph of what `run` launches, after `warm` runs on a stream of its own."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(warm):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with capturing(graph):
        run()
    return graph


def wait(device: str | torch.device) -> None:
    """Until the device has done all it was given."""
    if str(device).startswith("cuda"):
        torch.cuda.synchronize(device)


def timed(run: Callable[[], Any], cycles: int = SPIN_CYCLES) -> float:
    """Seconds of device time between two events around what `run` launches, launched beforehand.

    cycles: of the busy wait; what the host has not launched when it ends is in the time.
    """
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(cycles)
    begin.record()
    run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3
