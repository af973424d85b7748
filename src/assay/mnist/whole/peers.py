"""Who races on a GPU, by name: PyTorch in every form that may be its fastest, and ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..model import Parameters
from .bench import Course
from .by_torch import TorchSteps
from .by_us import FastSteps, LayerSteps

AUTOTUNED = 1024
"""The only batch at which peers that take a minute to compile race, unless they are named."""


@dataclass(frozen=True)
class Whole:
    """One who races with whole steps: what makes its bursts, class of precision, if it is ours."""

    make: Callable[[Parameters, Course], Any]
    precision: str
    ours: bool = False
    slow: str = ""
    """Why it races at AUTOTUNED alone; empty: it races at every batch."""


def _torch(precision: str = "tf32", slow: str = "", **options: Any) -> Whole:
    return Whole(lambda p, c: TorchSteps(p, c, **options), precision, slow=slow)


AGAIN = "compiles once more"
TUNES = "tries many kernels before the first step"
MAX = "max-autotune-no-cudagraphs"
PEERS: dict[str, Whole] = {
    "fast": Whole(FastSteps, "tf32", ours=True),
    "fast, one after another": Whole(lambda p, c: FastSteps(p, c, early=False), "tf32", ours=True),
    "fast, no graph": Whole(lambda p, c: FastSteps(p, c, graph=False), "tf32", ours=True),
    "naive": Whole(
        lambda p, c: LayerSteps(p, c, "cuda"), "float32", ours=True, slow="takes long a step"
    ),
    "naive, no graph": Whole(
        lambda p, c: LayerSteps(p, c, "cuda", graph=False), "float32", ours=True, slow="takes long"
    ),
    "eager": _torch(),
    "eager + graph": _torch(graph=True),
    "eager channels_last + graph": _torch(graph=True, channels_last=True),
    "compile": _torch(slow=AGAIN, mode="default"),
    "compile + graph": _torch(mode="default", graph=True),
    "compile channels_last + graph": _torch(mode="default", graph=True, channels_last=True),
    "reduce-overhead": _torch(slow=AGAIN, mode="reduce-overhead", channels_last=True),
    "max-autotune + graph": _torch(slow=TUNES, mode=MAX, graph=True),
    "max-autotune channels_last + graph": _torch(
        slow=TUNES, mode=MAX, graph=True, channels_last=True
    ),
    "bf16 compile channels_last + graph": _torch(
        "bf16", mode="default", graph=True, channels_last=True, half=True
    ),
}
