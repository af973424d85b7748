"""What the gallery's fork server imports beside torch: Inductor, and the libraries of peers.py.

Each operator is timed in a process of its own, which would take up to twenty seconds to import them
while nothing else may run. Whoever forks must not have started CUDA: no process that is forked then
could use a GPU. So nothing here asks the driver, and if something has, this ends, and the gallery
goes on without it.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import importlib.util
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no pool of workers, which would be forked too

import torch

CONTROL = Path("/dev/nvidiactl")
INDUCTOR = ("torch._dynamo", "torch._inductor.compile_fx")
LIBRARIES = ("liger_kernel.ops", "quack")


def opened() -> list[str]:
    """Devices of NVIDIA's that this process has open."""
    found = []
    for each in Path("/proc/self/fd").glob("*"):
        try:
            found.append(os.readlink(each))
        except OSError:  # closed meanwhile: the one that lists them
            continue
    return [name for name in found if name.startswith("/dev/nvidia")]


@contextlib.contextmanager
def answered(gpu: bool) -> Iterator[None]:
    """Whoever asks whether there is a GPU is told without the driver: torch 2.11's Inductor does,
    tvm_ffi, and Liger, each as it is imported."""
    asked = torch.cuda.is_available
    torch.cuda.is_available = lambda: gpu
    try:
        yield
    finally:
        torch.cuda.is_available = asked


def pinned() -> None:
    """Tells QuACK and its compiler the architecture, which they would ask the driver for."""
    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    number = said[0].replace(".", "")
    os.environ.setdefault("QUACK_ARCH", number)
    os.environ.setdefault("CUTE_DSL_ARCH", f"sm_{number}" + ("a" if int(number) >= 90 else ""))


def imported() -> None:
    """Imports what there is; libraries only where they could run."""
    gpu = CONTROL.exists()
    with answered(gpu):
        for name in INDUCTOR:
            importlib.import_module(name)
        if not gpu:
            return
        pinned()
        for name in LIBRARIES:
            if importlib.util.find_spec(name.partition(".")[0]):
                importlib.import_module(name)


imported()
if torch.cuda.is_initialized() or opened():
    raise SystemExit(f"importing {', '.join(INDUCTOR + LIBRARIES)} started CUDA")
atexit.register(os._exit, 0)  # at once: Triton's library would tell of what it leaks at the end
