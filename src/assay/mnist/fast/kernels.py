"""The kernels of the fast step, built by the way `cuda`: for a GPU, or watched on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...op import Op, Variant
from ...types import Case
from ...ways import DEFAULT_ARCH, Job, cuda

SOURCE = Path(__file__).parent / "step.cu"
NAMES = (
    "patch_products",
    "second_conv",
    "hidden",
    "head",
    "hidden_grad",
    "convs_grad",
    "finish",
    "update_all",
)


def _launched(*_: Any) -> tuple[Any, ...]:
    raise AssertionError("the step launches its kernels itself: see step.Step")


_VARIANT = Variant("cuda/fast", "cuda", _launched, fills=True, source=SOURCE)


def _job(device: str, arch: str, watch: Any = None) -> Job:
    step = Op("mnist_step", _launched, _launched, cases=[{}])
    return Job(step, _VARIANT, {}, Case(), device, arch, lambda _: None, watch=watch)


def load(device: str, arch: str, watch: Any = None) -> Any:
    """What `k[name](grid=, block=, shared=)(...)` launches; with `watch` on the CPU.

    Raises BuildError, or LaunchError from a launch.
    """
    job = _job(device, arch, watch)
    built = cuda.compile_source(SOURCE, list(NAMES), job)
    return cuda.Watched(built, job) if watch is not None else cuda.module(built, job)


def built(arch: str = DEFAULT_ARCH) -> Any:
    """The compiled source: its PTX, and of each kernel its `facts` and its name there."""
    return cuda.compile_source(SOURCE, list(NAMES), _job("cpu", arch))


def facts(arch: str = DEFAULT_ARCH) -> dict[str, Any]:
    """What ptxas says of each kernel: registers, shared memory, spills."""
    found: dict[str, Any] = built(arch).facts
    return found
