"""What calls really ran on the GPU, by CUPTI through torch's profiler: kernels, streams, times.

Events on the current stream do not see work elsewhere, and carry a cost of their own; this sees all
of it, and from start to end. It runs before the timed samples, never during them, since tracing
perturbs. Every call is prepared as a sample is: cold L2, the launch hidden behind a busy GPU. Work
is told apart by stream and order, never by name.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.autograd.profiler import profile

CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
ROUNDS = 12
"""Calls that are watched. More would be known better; tracing costs a second a thousand."""
Prepare = Callable[[], None]


@dataclass(frozen=True)
class Seen:
    """What CUPTI saw of the calls."""

    kernels: int
    """Kernels, copies and fills of one call."""
    elsewhere: int
    """Those of them that ran on another stream than the current one."""
    seconds: tuple[float, ...]
    """For each call, the sum of their durations."""
    spans: tuple[float, ...]
    """For each call, from the first start to the last end on the current stream."""
    uneven: str = ""
    """Empty, or how the calls differ in what they ran."""
    prepared: int = 0
    """Kernels, copies and fills that prepared each call, the marker among them."""


class Witness:
    """Watches calls; the first profile of a process is thrown away, since it may come out empty."""

    def __init__(self, device: str):
        self._marker = torch.zeros(1, device=device)
        self.missing = ""
        """Why there is no witness, once one was asked for in vain."""
        self.trace(lambda: None)

    def watch(
        self,
        prepare: Prepare,
        call: Callable[[], None],
    ) -> Seen | None:
        """What ROUNDS calls ran; None, with `missing` saying why, if CUPTI can't tell.

        prepare: comes before every call, on the current stream, and always launches the same.
        """

        def rounds(action: Callable[[], None]) -> Callable[[], None]:
            def all_of_them() -> None:
                for _ in range(ROUNDS):
                    self.mark()
                    prepare()
                    action()

            return all_of_them

        own = self.trace(rounds(lambda: None))
        return self._seen(len(own), self.trace(rounds(call)) if own else [], ROUNDS)

    def watch_taken(self, takes: Sequence[Callable[[], None]], prepared: int) -> Seen | None:
        """The same of calls that mark and prepare themselves, each with so many kernels."""

        def all_of_them() -> None:
            for take in takes:
                take()

        return self._seen(len(takes) * prepared, self.trace(all_of_them), len(takes))

    def mark(self) -> None:
        """A kernel of our own on the current stream, which every watched call begins with."""
        self._marker.fill_(1.0)

    def _seen(self, own: int, events: list[dict[str, Any]], count: int) -> Seen | None:
        if not events:
            self.missing = "CUPTI records nothing here: is another profiler attached?"
            return None
        return seen(own, events, count)

    def trace(self, calls: Callable[[], object]) -> list[dict[str, Any]]:
        """GPU events in order of their start; the first is our own, on the current stream."""
        # torch.profiler.profile does the same and first imports Inductor and torch.distributed,
        # which is 1 to 4 s in every process.
        with profile(use_cpu=False, use_device="cuda", use_kineto=True) as trace:
            calls()
            torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            trace.export_chrome_trace(str(path))
            events = json.loads(path.read_text())["traceEvents"]
        found = [event for event in events if event.get("cat") in CATEGORIES]
        return sorted(found, key=lambda event: float(event["ts"]))


def seen(own: int, events: list[dict[str, Any]], rounds: int = ROUNDS) -> Seen:
    """What the calls ran, of how much prepares them all, and of the trace of both.

    Events have `ts` and `dur` in microseconds, `name` and args.stream; the first one's stream is
    the current one.
    """
    stream = events[0]["args"]["stream"]
    here = [event for event in events if event["args"]["stream"] == stream]
    elsewhere = len(events) - len(here)
    prepared, left = divmod(own, rounds)
    made, odd = divmod(len(here) - rounds * prepared, rounds)
    if left or odd or made < 0 or elsewhere % rounds:
        counts = f"{len(events) - own} kernels and copies in {rounds} calls"
        return Seen(max(0, made), elsewhere, (), (), f"{counts}: not the same in each")
    size = prepared + made
    calls = [here[i * size + prepared : (i + 1) * size] for i in range(rounds)]
    uneven = "" if len({_kinds(call) for call in calls}) == 1 else "other kernels in some calls"
    spans = [_end(call[-1]) - float(call[0]["ts"]) for call in calls if call]
    return Seen(
        kernels=made + elsewhere // rounds,
        elsewhere=elsewhere // rounds,
        seconds=tuple(1e-6 * sum(float(event["dur"]) for event in call) for call in calls),
        spans=tuple(1e-6 * span for span in spans),
        uneven=uneven,
        prepared=prepared,
    )


def _kinds(call: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(sorted(str(event["name"]) for event in call))


def _end(event: dict[str, Any]) -> float:
    return float(event["ts"]) + float(event["dur"])
