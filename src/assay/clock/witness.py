"""What one call really ran on the GPU, by CUPTI through torch.profiler: kernels, streams, time.

Events on the current stream do not see work elsewhere; this does. It runs before the timed samples,
never during them, since tracing perturbs. Work is told apart by category and order, never by name.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")


@dataclass(frozen=True)
class Seen:
    """What CUPTI saw of one call."""

    kernels: int
    """Kernels, copies and fills."""
    elsewhere: int
    """Those of them that ran on another stream than the current one."""
    seconds: float
    """Sum of their durations."""


class Witness:
    """Watches calls; the first profile of a process is thrown away, since it may come out empty."""

    def __init__(self, device: str):
        self._marker = torch.zeros(1, device=device)
        self.missing = ""
        """Why there is no witness, once one was asked for in vain."""
        self._trace(lambda: None)

    def watch(self, call: Callable[[], None]) -> Seen | None:
        """What the call ran; None, with `missing` saying why, if CUPTI can't tell."""
        events = self._trace(call)
        if not events:
            self.missing = "CUPTI records nothing here: is another profiler attached?"
            return None
        marker, *mine = events
        stream = marker["args"]["stream"]
        return Seen(
            kernels=len(mine),
            elsewhere=sum(event["args"]["stream"] != stream for event in mine),
            seconds=sum(event["dur"] for event in mine) * 1e-6,
        )

    def _trace(self, call: Callable[[], None]) -> list[dict]:
        """GPU events in order of their start; the first is our own fill on the current stream."""
        with profile(activities=[ProfilerActivity.CUDA]) as trace:
            self._marker.fill_(1.0)
            torch.cuda.synchronize()
            call()
            torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            trace.export_chrome_trace(str(path))
            events = json.loads(path.read_text())["traceEvents"]
        found = [event for event in events if event.get("cat") in CATEGORIES]
        return sorted(found, key=lambda event: float(event["ts"]))
