"""A clock of its own for short kernels: CUDA graphs with more and more copies of one call.

T(n) is the time of replaying n copies. (T(4n) - T(n)) / 3n is the period: what one more call costs
behind another, where launch, events and the first node cancel. A third graph of 2n copies must lie
on the line, else caches or clocks had their say and the period is none. The caches are hot.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import torch
from torch.cuda.memory import _cuda_endAllocateToPool, _cuda_releasePool

FILL_SECONDS, MOST_COPIES = 2e-3, 64
REPLAYS = 20
STRAIGHT = 0.02
"""Relative distance of T(2n) from the line, up to which there is a period."""
WAIT_CYCLES = 400_000
"""Keeps the GPU busy until the replay is queued: 200 us."""


@dataclass(frozen=True)
class Period:
    """Seconds a call, and how far T(2n) is from the line, relative."""

    seconds: float
    bent: float

    @property
    def straight(self) -> bool:
        return abs(self.bent) <= STRAIGHT


def period(call: Callable[[], None], about: float) -> Period:
    """The period of a call on the current device, which takes about so many seconds.

    Raises what capturing raises: a call that allocates, synchronises or copies to the host can't be
    captured.
    """
    fewest = max(1, min(MOST_COPIES // 4, math.ceil(FILL_SECONDS / 4 / max(about, 1e-9))))
    sizes = fewest, 2 * fewest, 4 * fewest
    replays = [captured(call, size) for size in sizes]
    times: list[list[float]] = [[] for _ in sizes]
    for _ in range(REPLAYS):
        for found, graph in zip(times, replays):
            found.append(_seconds(graph))
    return of(sizes, [statistics.median(found) for found in times])


def of(sizes: tuple[int, int, int], times: list[float]) -> Period:
    """The period of three graphs of n, 2n and 4n copies."""
    slope = (times[2] - times[0]) / (sizes[2] - sizes[0])
    line = times[0] + slope * (sizes[1] - sizes[0])
    return Period(slope, times[1] / line - 1)


@contextmanager
def capturing(
    graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream | None = None
) -> Iterator[None]:
    """Captures what is launched on the current device; what can't be captured raises, and leaves
    the process as it was.

    torch.cuda.graph alone does not (torch 2.11): the capture's stream stays the current one; the
    device's generator stays in the capture, and whoever draws from it next gets an error; and the
    allocator stays in it too, keeping its memory and all that several streams have used.
    """
    device, before = torch.cuda.current_device(), torch.cuda.current_stream()
    generator, pool = torch.cuda.default_generators[device], torch.cuda.graph_pool_handle()
    spare = generator.clone_state()
    try:
        with torch.cuda.graph(graph, pool=pool, stream=stream):
            yield
    except BaseException:
        torch.cuda.set_stream(before)
        generator.graphsafe_set_state(spare)
        with suppress(RuntimeError):  # where only `yield` failed, the capture has ended in order
            _cuda_endAllocateToPool(device, pool)
            _cuda_releasePool(device, pool)
        raise


def captured(call: Callable[[], None], copies: int) -> torch.cuda.CUDAGraph:
    """A graph of so many copies of a call. Raises what capturing raises."""
    graph = torch.cuda.CUDAGraph()
    with capturing(graph):
        for _ in range(copies):
            call()
    return graph


def _seconds(graph: torch.cuda.CUDAGraph) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(WAIT_CYCLES)
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e-3
