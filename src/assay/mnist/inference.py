"""Reading alone, timed: logits of one batch by ours, by PyTorch and by ONNX Runtime, in turns.

Each gets normalised digits where it computes, as many threads on a CPU, and gives logits there; a
sample ends when the device has done it. ONNX Runtime runs on a GPU only if it was built for one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..clock.statistics import interval, ratio, verdict
from .onnx_file import CUDA, session
from .train import State
from .twin import Twin
from .whole.bench import wait

SETTLING, ROUNDS = 5, 60


@dataclass(frozen=True)
class Read:
    """Seconds of a batch of one reader, round by round."""

    name: str
    samples: tuple[float, ...]

    @property
    def seconds(self) -> tuple[float, float, float]:
        """(low, median, high)."""
        return interval(self.samples)

    def over(self, ours: Read) -> tuple[float, float, float, str]:
        """(low, middle, high, word) of its time over ours, paired by round."""
        rounds = range(len(self.samples))
        low, middle, high = ratio(ours.samples, rounds, self.samples, rounds)
        return low, middle, high, verdict(low, middle, high)


def side_by_side(
    net: Any, x: Any, pixels: torch.Tensor, state: State, path: Path, rounds: int = ROUNDS
) -> tuple[list[Read], str]:
    """Ours first; and why ONNX Runtime did not run, if it did not.

    net: ours, and x the batch as it loaded it. pixels: the same digits (n, 1, side, side) float32,
    normalised, on the device of `net`. path: the network of `state` as ONNX.
    Raises AssayError without onnxruntime.
    """
    device, why = pixels.device, ""
    twin = Twin(state.parameters, device=str(device))
    readers: dict[str, Callable[[], Any]] = {
        "ours": lambda: net.logits(x),
        "PyTorch, eager": lambda: twin.logits(pixels),
    }
    runtime = session(path, device.type)
    if device.type == "cuda" and CUDA not in runtime.get_providers():
        why = "this build of ONNX Runtime has no GPU: pip install onnxruntime-gpu"
    else:
        readers["ONNX Runtime"] = _bound(runtime, pixels)
    samples: dict[str, list[float]] = {name: [] for name in readers}
    shuffle = random.Random(0)
    for _ in range(SETTLING + rounds):
        for name in shuffle.sample(list(readers), len(readers)):
            samples[name].append(_timed(readers[name], device))
    return [Read(name, tuple(found[SETTLING:])) for name, found in samples.items()], why


def _timed(call: Callable[[], Any], device: torch.device) -> float:
    wait(device)
    begun = time.perf_counter()
    call()
    wait(device)
    return time.perf_counter() - begun


def _bound(runtime: Any, pixels: torch.Tensor) -> Callable[[], Any]:
    """A call on memory that stays where it is, so that nothing is copied to or from the host."""
    if pixels.device.type == "cpu":
        given = {"images": pixels.numpy()}
        return lambda: runtime.run(["logits"], given)
    import numpy

    binding = runtime.io_binding()
    binding.bind_input(
        "images", "cuda", pixels.device.index or 0, numpy.float32, tuple(pixels.shape),
        pixels.data_ptr(),
    )  # fmt: skip
    binding.bind_output("logits", "cuda", pixels.device.index or 0)
    return lambda: runtime.run_with_iobinding(binding)
