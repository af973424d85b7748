"""What the gallery's fork server imports beside torch: Inductor, once and not in every process.

Each operator is timed in a process of its own, and in it Inductor would take seconds to import
while nothing else may run. If importing it had opened a GPU, no fork of this process could use one:
then this ends, and the gallery goes on without it.
"""

from __future__ import annotations

import atexit
import os
from pathlib import Path

os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no pool of workers, which would be forked too

import torch
import torch._dynamo
import torch._inductor.compile_fx


def opened() -> list[str]:
    """Devices of NVIDIA's that this process has open."""
    found = []
    for each in Path("/proc/self/fd").glob("*"):
        try:
            found.append(os.readlink(each))
        except OSError:  # closed meanwhile: the one that lists them
            continue
    return [name for name in found if name.startswith("/dev/nvidia")]


if torch.cuda.is_initialized() or opened():
    raise SystemExit("importing Inductor started CUDA")
atexit.register(os._exit, 0)  # at once: Triton's library would tell of what it leaks at the end
