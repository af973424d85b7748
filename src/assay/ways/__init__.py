"""The ways of writing a kernel: where each can run, and how its source becomes callable.

A way is one file with two functions: `here(device)` says what can be done on this machine (the
parent asks it, so it imports no framework), and `load(job)` builds the source (in a child).
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..op import Op, Variant
from ..types import Build, Case, Counters, Scalar

WITH_GRID = ("triton", "cuda", "extension", "numba", "library")
"""Ways whose kernels are launched on a grid of blocks, which has limits."""

DEFAULT_ARCH = "sm_90"
"""What is compiled for where no GPU says otherwise."""


@dataclass(frozen=True)
class Here:
    """What a way can do on this machine for a device."""

    judge: str = ""
    """Where its kernels run: `cpu`, `cuda:0`, `simt` (compiled code, on the CPU), `interpreter`,
    `simulator`; empty: nowhere."""
    timed: bool = False
    reason: str = ""
    """Why it is not run, or not timed."""
    env: dict[str, str] = field(default_factory=dict)
    """Set in a child before it imports anything of the user's."""
    compiles: bool = False
    """Whether it can at least be compiled where it can't run."""

    @property
    def device(self) -> str:
        """Where inputs are placed."""
        return self.judge if self.judge.startswith(("cpu", "cuda")) else "cpu"


@dataclass(frozen=True)
class Job:
    """One kernel to load: everything that decides how it is built."""

    op: Op
    variant: Variant
    knobs: dict[str, Scalar]
    case: Case
    device: str
    arch: str
    dry_run: Callable[[Any], None]
    """Calls the launcher on meta tensors with a handle, so that a way sees what it launches."""
    say: Callable[[str], None] = lambda _: None
    watch: Any = None
    """A `simt.Watch` that runs its launches on the CPU, where the judge is `simt`."""

    @property
    def what(self) -> str:
        return f"{self.op.name} {self.variant.name}"

    @property
    def architecture(self) -> str:
        """What it is compiled for: what the variant says, else what the run does."""
        return self.variant.arch or self.arch


@dataclass(frozen=True)
class Loaded:
    """A source that was built: the launcher's first argument, and what the compiler said."""

    handle: Any
    build: Build
    counters: Counters | None = None


FILES = {
    "eager": "direct",
    "compiled": "compiled",
    "python": "python",
    "triton": "triton",
    "cuda": "cuda",
    "extension": "extension",
    "numba": "numba",
    "cpp": "cpp",
    "library": "library",
}


def way(name: str) -> Any:
    """The module of a way."""
    return importlib.import_module(f".{FILES[name]}", __name__)


def here(name: str, device: str) -> Here:
    """What a way can do here, with `device` chosen for the run (`cpu`, `cuda:0`)."""
    found: Here = way(name).here(device)
    return found


def stepped(name: str, device: str) -> Here:
    """The same, with an interpreter or simulator in place of compiled code run on the CPU.

    For what that can't run, and for people who print or stop inside a kernel.
    """
    module = way(name)
    found: Here = module.stepped() if _has_stepper(module, device) else module.here(device)
    return found


def _has_stepper(module: Any, device: str) -> bool:
    return hasattr(module, "stepped") and not device.startswith("cuda")


def watching(judge: str, say: Callable[[str], None] = lambda _: None) -> Any:
    """A `simt.Watch` for a child whose kernels run as compiled code on the CPU, else None."""
    if judge != "simt":
        return None
    from ..simt import Watch  # half of what a child imports beside torch

    return Watch(say)


NO_GPU = "no GPU: judged from its compiled code"


def watches() -> bool:
    """Whether compiled GPU code can be run on this CPU: it is translated to C++."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None
