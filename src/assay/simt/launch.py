"""One launch on the CPU: what the runtime is given and points to, and what came of it."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..types import Fault
from . import layout
from .build import runtime
from .code import FIRST_WINDOW, WINDOW_SHIFT
from .counts import Counts
from .memory import Window, number_blocks
from .parameters import Packed
from .record import Recorded
from .results import Tally, faults_of

if TYPE_CHECKING:
    from .module import Kernel

QUOTA = {True: 64, False: 1 << 16}
"""Backward branches before a warp lets others run; short where warps may wait in a loop."""
STEP_LIMIT = 1 << 28
RESIDENT_BYTES = 1 << 30
MOST_FAULTS = 4096
MOST_PRINTED = 1 << 20


@dataclass(frozen=True)
class Launched:
    """What one launch did."""

    faults: tuple[Fault, ...]
    tally: Tally
    printed: str
    """What the kernel's printf wrote."""
    arch: str
    record: Recorded | None = None
    """Who touched what, if that was asked for."""

    @cached_property
    def counts(self) -> Counts:
        """By line of source."""
        return self.tally.counts()


class Snapshot:
    """A window as it was before a launch, with what was known of its bytes."""

    def __init__(self, window: Window):
        self.window = window
        now = np.ctypeslib.as_array((ctypes.c_uint8 * window.bytes).from_address(window.start))
        self.data = now.copy()
        self.written = None if window.written is None else window.written.copy()

    def restore(self) -> None:
        if not self.window.read_only:
            ctypes.memmove(self.window.start, self.data.ctypes.data, self.window.bytes)
        if self.written is not None:
            self.window.written[:] = self.written


class Launch:
    """One call of the runtime, with all that it points to."""

    def __init__(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        parameters: Packed,
        windows: list[Window],
        shared: int,
        order: int,
        one_program: bool,
        recorded: Recorded | None,
        threads: int,
    ):
        self.environment = np.zeros(64, np.uint8)
        workspace = Window(self.environment.ctypes.data, 64, "the launch's workspace")
        windows = [*windows, workspace]
        self.kernel, self.windows, self.threads = kernel, windows, threads
        self.grid, self.block, self.recorded = grid, block, recorded
        code = kernel.code
        blocks = math.prod(grid)
        self.shift = code.granule.bit_length() - 1
        self.sites = (layout.SiteCount * (len(code.sites) + 1))()
        self.block_counts = (layout.BlockCount * (len(code.depths) + 1))()
        self.faults = (layout.Fault * MOST_FAULTS)()
        self.depths = (ctypes.c_uint32 * len(code.depths))(*code.depths)
        self.above = (ctypes.c_uint32 * max(1, len(code.above)))(*code.above)
        self.most_printed = MOST_PRINTED if code.prints else 1
        self.printed = ctypes.create_string_buffer(self.most_printed)
        self.bytes = self._bytes(parameters)
        self.table = (layout.Window * max(1, len(windows)))(
            *(_row(window, recorded) for window in windows)
        )
        warps = -(-math.prod(block) // 32)
        resident = warps * (code.register_bytes + 32 * code.local_bytes + 4096) + 5 * (
            code.static_shared + shared
        )
        self.given = layout.Launch(
            windows=len(windows),
            window=self.table,
            sites=len(code.sites),
            site=self.sites,
            blocks_of_code=len(code.depths),
            block_count=self.block_counts,
            fault=self.faults,
            max_faults=MOST_FAULTS,
            grid=grid,
            threads=block,
            dynamic_shared=shared,
            static_shared=code.static_shared,
            parameters=self.bytes.ctypes.data,
            parameter_bytes=len(self.bytes),
            register_bytes=code.register_bytes,
            local_bytes=code.local_bytes,
            run=ctypes.cast(kernel.run, ctypes.c_void_p),
            depth=self.depths,
            above=self.above,
            order=order,
            checks=kernel.checks,
            counts=kernel.checks,
            granule_shift=self.shift,
            shared_granule_shift=code.shared_granule.bit_length() - 1,
            communicates=code.communicates,
            one_program=one_program,
            host_threads=threads,
            max_resident=max(1, min(4096, RESIDENT_BYTES // max(1, resident))),
            quota=QUOTA[code.communicates],
            step_limit=STEP_LIMIT,
            first_block=number_blocks(blocks),
            printed=ctypes.addressof(self.printed),
            max_printed=self.most_printed,
            environment=(FIRST_WINDOW + len(windows) - 1) << WINDOW_SHIFT,
        )
        self._shadows()

    def _bytes(self, parameters: Packed) -> Any:
        size = max((o + s for _, _, s, o in self.kernel.code.parameters), default=0)
        made = np.zeros(max(size, 1), np.uint8)
        for offset, value in parameters:
            if isinstance(value, tuple):
                window, inner = value
                number = next(i for i, w in enumerate(self.windows) if w is window)
                address = ((FIRST_WINDOW + number) << WINDOW_SHIFT) + inner
                value = address.to_bytes(8, "little")
            made[offset : offset + len(value)] = np.frombuffer(value, np.uint8)
        return made

    def _shadows(self) -> None:
        """[worker][window] pointers to each of the three shadows."""
        self.held: list[Any] = []
        pointers: list[Any] = []
        for which in range(3):
            workers = (ctypes.c_void_p * self.threads)()
            for worker in range(self.threads):
                row = (ctypes.c_void_p * max(1, len(self.windows)))()
                for index, window in enumerate(self.windows):
                    if self.kernel.checks and window.bytes:
                        row[index] = window.shadow(worker, self.shift)[which].ctypes.data
                self.held.append(row)
                workers[worker] = ctypes.addressof(row)
            pointers.append(workers)
            self.held.append(workers)
        self.given.writer, self.given.reader, self.given.writer_site = (
            ctypes.addressof(p) for p in pointers
        )

    def _tally(self) -> Tally:
        return Tally(
            self.kernel.code,
            _array(self.sites, len(layout.SiteCount._fields_)),
            _array(self.block_counts, len(layout.BlockCount._fields_))[:-1],
        )

    def run(self) -> None:
        runtime().simt_launch(ctypes.byref(self.given))

    @property
    def conflict(self) -> bool:
        """Whether blocks on different cores touched the same memory."""
        return bool(self.given.conflict)

    def launched(self) -> Launched:
        """What it did."""
        code, written = self.kernel.code, min(self.given.printed_bytes, self.most_printed)
        return Launched(
            faults=faults_of(code, self.given, self.faults, self.windows, self.block),
            tally=self._tally(),
            printed=self.printed.raw[:written].rstrip(b"\0").decode(errors="replace"),
            arch=self.kernel.arch,
            record=self.recorded,
        )


def _array(numbers: Any, fields: int) -> Any:
    """A copy of an array of structures of uint64, as (structures, fields)."""
    return np.frombuffer(numbers, np.uint64).reshape(-1, fields)[:-1].copy()


def _row(window: Window, recorded: Recorded | None) -> layout.Window:
    cells = recorded.cells(window) if recorded is not None else None
    return layout.Window(
        host=window.start,
        bytes=window.bytes,
        written=window.written.ctypes.data if window.written is not None else None,
        flags=int(window.read_only),
        record=cells.ctypes.data if cells is not None else None,
    )
