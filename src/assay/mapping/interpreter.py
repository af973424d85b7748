"""Triton's interpreter, told to report each load and store of each program to a Recorder."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .recorder import Recorder

ACCESSES = {
    "create_masked_load": ("load", "ptrs"),
    "create_masked_store": ("store", "ptrs"),
    "create_atomic_rmw": ("atomic", "ptr"),
    "create_atomic_cas": ("atomic", "ptr"),
}
"""Method of the interpreter's builder -> what it does, and its parameter with the pointers."""


def report_to(recorder: Recorder) -> None:
    """For the rest of this process."""
    from triton.runtime import interpreter

    builder, now = interpreter.interpreter_builder, _Now()
    for name, (what, pointers) in ACCESSES.items():
        setattr(builder, name, _seen(getattr(builder, name), what, pointers, recorder, now))
    set_dim, set_idx = builder.set_grid_dim, builder.set_grid_idx
    call = interpreter.GridExecutor.__call__

    def set_grid_dim(nx: int, ny: int, nz: int) -> None:
        now.grid = nx, ny, nz
        recorder.launch(now.kernel, now.grid, (1,))
        set_dim(nx, ny, nz)

    def set_grid_idx(x: int, y: int, z: int) -> None:
        now.program = x + now.grid[0] * (y + now.grid[1] * z)
        set_idx(x, y, z)

    def called(self: Any, *args: Any, **options: Any) -> Any:
        now.kernel = getattr(self.fn, "__name__", "kernel")
        return call(self, *args, **options)

    builder.set_grid_dim, builder.set_grid_idx = set_grid_dim, set_grid_idx
    interpreter.GridExecutor.__call__ = called


class _Now:
    """Which program of which launch is running."""

    def __init__(self) -> None:
        self.kernel, self.grid, self.program = "kernel", (1, 1, 1), 0


def _seen(
    run: Callable[..., Any], what: str, pointers: str, recorder: Recorder, now: _Now
) -> Callable[..., Any]:
    signature = inspect.signature(run)

    def seen(*args: Any, **options: Any) -> Any:
        given = signature.bind(*args, **options).arguments
        handle = given[pointers]
        at = np.asarray(handle.data).reshape(-1)
        mask = np.ones(at.shape, np.bool_)
        if "mask" in given:
            mask = np.broadcast_to(given["mask"].data, handle.data.shape).reshape(-1) != 0
        size = max(1, handle.get_element_ty().primitive_bitwidth // 8)
        if now.program == 0:
            recorder.step(what, at, mask, size)
        recorder.touch(what, at[mask], size, now.program)
        return run(*args, **options)

    return seen
