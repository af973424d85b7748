"""`triton`: @triton.jit kernels. Without a GPU their PTX is run on the CPU, watched; what can't be
run so goes to the interpreter, within a budget.
"""

from __future__ import annotations

import importlib.util
import time
from typing import Any

from ..errors import NotRun
from . import NO_GPU, Here, watches

PROGRAM_SECONDS = 1.35e-3
"""What one program costs in the interpreter; seen on a 2-core Xeon, short kernels."""


def here(device: str) -> Here:
    if importlib.util.find_spec("triton") is None:
        return Here(reason="Triton is not installed: pip install 'assay[triton]'")
    if device.startswith("cuda"):
        return Here(judge=device, timed=True)
    return Here("simt", reason=NO_GPU, env={"TRITON_INTERPRET": "0"}) if watches() else stepped()


def stepped() -> Here:
    """The interpreter, which takes Python's word for what a kernel does."""
    return Here(
        judge="interpreter",
        reason="no GPU: judged in the interpreter",
        env={"TRITON_INTERPRET": "1"},
    )


def watch(watching: Any) -> None:
    """Hands launches of this process to a `simt.Watch`."""
    from ..simt.adapters import triton

    triton.install(watching.run)


def refuses(dtypes: list[Any]) -> str:
    """Why the interpreter can't judge these dtypes, or empty."""
    import torch

    if any(d in (torch.bfloat16, torch.float16) for d in dtypes):
        return "the interpreter truncates casts to 16 bits, so it can't judge them: needs a GPU"
    return ""


def limit(seconds: float) -> None:
    """Makes the interpreter refuse a grid that would take longer, and stop one that does."""
    from triton.runtime import interpreter

    builder = interpreter.interpreter_builder
    set_dim, set_idx = builder.set_grid_dim, builder.set_grid_idx
    begun: list[float] = []

    def set_grid_dim(nx: int, ny: int, nz: int) -> None:
        programs = nx * ny * nz
        if programs * PROGRAM_SECONDS > seconds:
            raise NotRun(
                f"{programs:,} programs, about {programs * PROGRAM_SECONDS:.0f} s in the "
                "interpreter; --slow runs it"
            )
        begun[:] = [time.monotonic()]
        set_dim(nx, ny, nz)

    def set_grid_idx(x: int, y: int, z: int) -> None:
        if begun and time.monotonic() - begun[0] > seconds:
            raise NotRun(f"more than {seconds:.0f} s in the interpreter; --slow runs it")
        set_idx(x, y, z)

    builder.set_grid_dim, builder.set_grid_idx = set_grid_dim, set_grid_idx
