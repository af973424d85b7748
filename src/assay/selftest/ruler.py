"""The child that tries the clock on spins: kernels of a length that is known, or known better.

On a CPU a spin waits for the monotonic clock. On a GPU it counts cycles (torch.cuda._sleep), so the
card's clock is in its length and CUPTI knows how long it took, or it waits for the card's timer.
Messages in: {do: steady, lengths, rounds, by}, {do: bias, lengths, rounds}, {do: flush}; out:
{samples: one list a length, in the order of rounds}, {bias: [...]}, {flush: ...}.
"""

from __future__ import annotations

import functools
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..clock import cpu, events, graphs
from ..clock.choose import choose
from ..clock.gpu import gpu
from ..clock.protocol import SHORT_WINDOWS
from ..clock.traced import BLOCK, Traced, blocks, unguarded
from ..errors import AssayError
from ..processes.channel import Channel
from ..roofs.kernels import Kernels
from .clock import CYCLES, TIMER

WARM_SECONDS = 0.3
PROBE_BYTES = 1 << 24
"""Fits into any L2 that a flush is for, and is read in some microseconds."""


def main(channel: Channel, device: str, seed: int) -> None:
    """Answers until the parent closes the channel."""
    ruler: Any = Ruled(device) if device.startswith("cuda") else _Cpu()
    shuffle = random.Random(seed)
    while True:
        message = channel.receive()
        assert message is not None
        try:
            if message["do"] == "steady":
                clocks = [ruler.clock(length, message["by"]) for length in message["lengths"]]
                made = _interleaved(clocks, message["rounds"], shuffle)
                channel.send(samples=made)
            elif message["do"] == "bias":
                found = [ruler.bias(length, message["rounds"]) for length in message["lengths"]]
                channel.send(bias=found)
            else:
                channel.send(flush=ruler.flush())
        except AssayError as error:
            channel.send(mistake=str(error))


def _interleaved(clocks: list[Any], rounds: int, shuffle: random.Random) -> list[list[float]]:
    """Samples of spins in one schedule, each round in another order."""
    end = time.monotonic() + WARM_SECONDS
    while time.monotonic() < end:
        for clock in clocks:
            clock.sample()
    found: list[list[float]] = [[] for _ in clocks]
    for _ in range(0, rounds, BLOCK):
        for place, samples in _block(clocks, shuffle).items():
            found[place] += samples
    if any(len(samples) < rounds for samples in found):
        raise AssayError("CUPTI did not tell the spins apart: is another profiler attached?")
    return found


def _block(clocks: Sequence[Any], shuffle: random.Random) -> dict[int, list[float]]:
    """BLOCK samples of each clock, by its place, in one trace if they are traced."""
    if isinstance(clocks[0], Traced):
        return blocks(clocks, shuffle, unguarded)
    found: dict[int, list[float]] = {place: [] for place in range(len(clocks))}
    for _ in range(BLOCK):
        for place in shuffle.sample(range(len(clocks)), len(clocks)):
            found[place].append(clocks[place].sample())
    return found


class _Cpu:
    def clock(self, length: float, by: str = TIMER) -> cpu.Cpu:
        """Of a spin by the monotonic clock, whatever `by` says."""
        return cpu.Cpu(_busy(length), None, cpu.calls_for(length, False))

    def bias(self, length: float, rounds: int) -> dict[str, Any]:
        """What the clock reads of a spin that ends when the monotonic clock says so."""
        clock = self.clock(length)
        return {
            "length": length,
            "true": length,
            "wall": statistics.median(clock.sample() for _ in range(rounds)),
        }

    def flush(self) -> dict[str, Any]:
        return {"why": "samples on a CPU are hot: nothing is flushed"}


def _busy(length: float) -> Callable[[], None]:
    wait = int(length * 1e9)

    def spin() -> None:
        now = time.perf_counter_ns
        end = now() + wait
        while now() < end:
            pass

    return spin


class Ruled:
    """Spins on a GPU, and the clocks that read them."""

    def __init__(self, device: str):
        torch.cuda.set_device(device)
        self.device = device
        shared = gpu(device)
        self.cold, self.witness = shared.flush, shared.witness
        if shared.fixed is None:
            raise AssayError(f"the clock can't be tried: {self.witness.missing}")
        self.fixed = shared.fixed

    @functools.cached_property
    def kernels(self) -> Kernels:
        """Those of `assay roofs`. Raises AssayError where they can't be built."""
        major, minor = torch.cuda.get_device_capability(self.device)
        return Kernels(self.device, f"sm_{major}{minor}", lambda _: None)

    def spin(self, length: float, by: str) -> Callable[[], None]:
        if by == TIMER:
            return self.kernels.call("wait_on_timer", 1, 1, round(1e9 * length))
        cycles = int(length * events.SLEEP_HZ)  # the same in every process, whatever the clock
        return lambda: torch.cuda._sleep(cycles)

    def clock(self, length: float, by: str = CYCLES) -> Traced:
        """As a kernel that is judged gets it."""
        chosen = choose(gpu(self.device), self.spin(length, by), length)
        if not isinstance(chosen.clock, Traced):
            raise AssayError(
                f"a spin of {1e6 * length:g} us was not seen as one kernel by CUPTI: "
                f"{self.witness.missing or chosen.seen}"
            )
        return chosen.clock

    def _events(self, call: Callable[[], None], flush: Callable[[], None], windows: int) -> Any:
        host = events.host_seconds(call)
        return events.Events(call, None, flush, host, fixed=self.fixed, windows=windows)

    def bias(self, length: float, rounds: int) -> dict[str, Any]:
        """What each clock reads of the same spin; CUPTI's span is taken for the truth.

        `in use` is the clock that a kernel of that length gets, in traces or windows of its own."""
        clock = self.clock(length)
        spans = [span for _ in range(0, rounds, BLOCK) for span in clock.block()]
        if not spans:
            raise AssayError(f"a spin of {1e6 * length:g} us was not seen by CUPTI: {clock.uneven}")
        used = _interleaved([self.clock(length)], rounds, random.Random(rounds))[0]
        windows = [clock.sample() for _ in range(rounds)]
        period = graphs.period(clock.call, statistics.median(windows))
        return {
            "length": length,
            "true": statistics.median(spans),
            "in use": statistics.median(used),
            "events": statistics.median(windows),
            "raw window": statistics.median(windows) + self.fixed,
            "graph": period.seconds,
            "graph not linear": period.bent,
        }

    def flush(self) -> dict[str, Any]:
        """A read of a small buffer: hot, after one flush, and after two, which must be the same."""
        small = torch.ones(PROBE_BYTES // 4, device=self.device)
        total = torch.zeros((), device=self.device)

        def read() -> None:
            torch.sum(small, dim=0, out=total)

        def taken(prepare: Callable[[], None]) -> float:
            clock = self._events(read, prepare, SHORT_WINDOWS)
            return statistics.median(clock.sample() for _ in range(40))

        def twice() -> None:
            self.cold()
            self.cold()

        return {
            "bytes": PROBE_BYTES,
            "l2_bytes": self.cold.l2_bytes,
            "hot": taken(read),
            "flushed": taken(self.cold),
            "flushed twice": taken(twice),
        }
