"""What the interpreter and the simulator touch, recorded as the engine records its launches.

Both run blocks one after the other, and the kernel's own Python: addresses and masks are seen as
its author wrote them. Of the first program every load and store is kept, in order.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import torch

from ..simt.memory import Memory
from ..simt.record import MOST_BYTES, Recorded, recording

MOST_STEPS = 64
"""Loads and stores of the first program that are kept."""


class Recorder:
    """Takes accesses as addresses, block and thread; keeps granules of one byte."""

    def __init__(self) -> None:
        self.memory, self.record = Memory(), False
        self.records: list[Recorded] = []
        self.faults: list[str] = []
        self._steps: list[tuple[str, Any, Any, int, int, str]] = []

    def clear(self) -> None:
        """Forgets everything, for the next run; the trace of the first stays."""
        self.memory, self.records = Memory(), []

    def launch(self, kernel: str, grid: Any, block: Any) -> None:
        """A launch begins. Raises NotRun where there is too much to record."""
        if not self.record:
            return
        room = MOST_BYTES - sum(record.bytes for record in self.records)
        windows = tuple(self.memory.windows)
        self.records.append(recording(kernel, _three(grid), _three(block), True, 0, windows, room))

    def touch(self, what: str, addresses: Any, size: int, block: int, thread: int = 0) -> None:
        """Lanes load, store or change `size` bytes each at these addresses."""
        if not self.record or not self.records or not len(addresses):
            return
        for window, cells in self.records[-1].windows:
            at = addresses.astype(np.int64) - window.start
            inside = at[(at >= 0) & (at + size <= window.bytes)]
            if len(inside):
                every = (inside[:, None] + np.arange(size)).reshape(-1)
                _note(cells, every, what, block + 1, thread)

    def step(self, what: str, addresses: Any, mask: Any, size: int) -> None:
        """Keeps one access of the first program of the first launch, for the trace."""
        if not self.record or len(self.records) != 1:
            return
        if len(self._steps) < MOST_STEPS:
            kept = addresses[mask]
            self._steps.append((what, kept, mask, size, mask.size, _place()))

    def trace(self, tensors: list[tuple[str, str, torch.Tensor]]) -> list[dict[str, Any]]:
        """The accesses that were kept, named by tensor and element."""
        return [_named(step, tensors) for step in self._steps]


def _note(cells: Any, at: Any, what: str, block: int, thread: int) -> None:
    """One block's accesses to these granules, some of them perhaps several times."""
    counts = {"load": "reads", "store": "writes", "atomic": "atomics"}[what]
    np.add.at(cells[counts], at, 1)
    once = np.unique(at)
    many, first, last, began, ended = (
        ("readers", "first_reader", "last_reader", "first_reading", "last_reading")
        if what == "load"
        else ("writers", "first_writer", "last_writer", "first_writing", "last_writing")
    )
    cells[many][once] += cells[last][once] != block
    new = once[cells[first][once] == 0]
    cells[first][new], cells[began][new] = block, thread
    cells[last][once], cells[ended][once] = block, thread


def _three(sizes: Any) -> tuple[int, int, int]:
    x, y, z = (*(int(n) for n in sizes), 1, 1)[:3]
    return x, y, z


def _place() -> str:
    """`file:line` of the innermost frame that is neither ours nor Triton's."""
    frame = inspect.currentframe()
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("assay.mapping", "triton.", "torch.")):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _named(
    step: tuple[str, Any, Any, int, int, str], tensors: list[tuple[str, str, torch.Tensor]]
) -> dict[str, Any]:
    what, addresses, mask, size, lanes, place = step
    made: dict[str, Any] = {"what": what, "tensor": "", "first": 0, "last": 0, "step": None}
    made |= {"lanes": int(mask.sum()), "of": lanes, "place": place}
    if not len(addresses):
        return made
    low, high = int(addresses.min()), int(addresses.max())
    for name, _, value in tensors:
        start = value.untyped_storage().data_ptr()
        if start <= low and high < start + value.untyped_storage().nbytes():
            made["tensor"] = name
            low, high = ((a - value.data_ptr()) // size for a in (low, high))
    gaps = np.unique(np.diff(np.sort(addresses.astype(np.int64)))) // size
    return {**made, "first": low, "last": high, "step": int(gaps[0]) if len(gaps) == 1 else None}


def recorder_of(judge: str) -> Recorder:
    """A recorder that the interpreter or the simulator of this process reports to."""
    from . import interpreter, simulator

    made = Recorder()
    (interpreter if judge == "interpreter" else simulator).report_to(made)
    return made
