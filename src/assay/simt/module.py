"""A kernel that was compiled for a GPU, ready to be launched on the CPU."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from threading import RLock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..errors import LaunchError
from ..types import Build, Fault
from . import layout, limits
from .build import library, runtime
from .code import FIRST_WINDOW, WINDOW_SHIFT, Code
from .counts import Counts
from .drop import Synchronisation, synchronisations, without
from .emit import emit
from .faults import NotCheckable
from .inline import flatten
from .memory import Memory, Window, number_blocks
from .parameters import Packed, Parameters
from .parse import parse
from .ptx import Program
from .record import Recorded, recording
from .results import Tally, faults_of

DEFAULT_ARCH = "sm_80"
"""What kernels are compiled for where they are judged without a GPU."""
QUOTA = {True: 64, False: 1 << 16}
"""Backward branches before a warp lets others run; short where warps may wait in a loop."""
STEP_LIMIT = 1 << 28
RESIDENT_BYTES = 1 << 30
MOST_FAULTS = 4096
MOST_PRINTED = 1 << 20
SNAPSHOT_BYTES = 64 << 20
MOST_CORES = 64
OWN_WINDOWS = 16
"""The first windows are the module's variables, as many as a multiple of this. So addresses that
a kernel keeps in memory mean the same in the next launch, also in one of another module."""


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


@dataclass
class Module:
    """The variables that all kernels of one PTX text share."""

    program: Program
    variables: dict[str, Any] = field(default_factory=dict)
    """NumPy bytes of each module variable that a loaded kernel names."""


@dataclass
class Kernel:
    """A kernel of a PTX text, translated and built."""

    name: str
    module: Module
    code: Code
    run: Any
    """The function of the library."""
    build: Build
    checks: bool = True

    @property
    def arch(self) -> str:
        return self.module.program.target

    @property
    def parameters(self) -> tuple[tuple[str, str, int], ...]:
        """(name, PTX type, bytes) of each."""
        return tuple((name, kind, size) for name, kind, size, _ in self.code.parameters)

    def variable(self, name: str) -> Any:
        """A `__device__` or `__constant__` variable, as its bytes: a NumPy array to write to."""
        if name not in self.module.variables:
            known = ", ".join(self.module.variables) or "none"
            raise LaunchError(f"{self.name} uses no variable {name!r}; those it uses: {known}")
        return self.module.variables[name]

    def launch(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        args: Sequence[Any],
        *,
        shared: int = 0,
        memory: Memory | None = None,
        order: int = 0,
        threads: int | None = None,
        one_program: bool = False,
        record: int = 0,
    ) -> Launched:
        """Runs it: tensors are CPU tensors or NumPy arrays, written in place.

        shared: dynamic shared memory, bytes. memory: windows of earlier launches. order: 0 runs
        warps and blocks in order; else the seed of a permutation. threads: cores to use.
        one_program: a block is one program (Triton), of which threads without a part of their
        own do the loads of others again, for nothing: no race within a block is then told
        between a read and a write of global memory, nor between stores by one instruction to
        shared memory. record: bytes that a record of who touches which memory may take; 0 keeps
        none.
        Raises LaunchError for what can't be launched.
        """
        memory = memory or Memory()
        three = limits.three("grid", grid), limits.three("block", block)
        limits.check(self.name, self.arch, self.code, *three, shared)
        parameters = Parameters(self.name, self.code.parameters, memory).pack(args)
        windows = [*self._own_windows(), *memory.windows]
        threads = 1 if record else self._threads(math.prod(three[0]), threads, windows)
        shift = self.code.granule.bit_length() - 1
        turns = not self.code.communicates
        kept = self.name, *three, turns, shift, tuple(memory.windows), record
        recorded = recording(*kept) if record else None
        if self.checks:
            limits.room(self.name, sum(window.wants(threads, shift) for window in windows))
        before = [_Snapshot(window) for window in windows if window.bytes] if threads > 1 else []
        given = (self, *three, parameters, windows, shared, order, one_program, recorded)
        made = _Launch(*given, threads)
        made.run()
        if made.conflict:  # found between cores: run again on one, for the exact place
            for snapshot in before:
                snapshot.restore()
            made = _Launch(*given, 1)
            made.run()
        return made.launched()

    def _own_windows(self) -> list[Window]:
        made = []
        for variable in self.module.program.windows():
            array = self.module.variables.get(variable.name)
            made.append(
                NO_WINDOW
                if array is None  # no kernel that is loaded names it
                else Window(
                    array.ctypes.data,
                    variable.bytes,
                    variable.name,
                    read_only=variable.space == "const",
                    keep=array,
                )
            )
        return made + [NO_WINDOW] * (-len(made) % OWN_WINDOWS)

    def _threads(self, blocks: int, asked: int | None, windows: list[Window]) -> int:
        if self.code.communicates or self.code.ordered or blocks < 8:
            return 1
        if sum(window.bytes for window in windows) > SNAPSHOT_BYTES:
            return 1
        return max(1, min(asked or min(os.cpu_count() or 1, 4), blocks, MOST_CORES))


NO_WINDOW = Window(0, 0)


class _Snapshot:
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


class _Launch:
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


_parsed = lru_cache(maxsize=64)(parse)
_modules: WeakValueDictionary[str, Module] = WeakValueDictionary()
"""The modules that some kernel belongs to: all kernels of a PTX text share one."""
_lock = RLock()
"""Of the modules, their variables, and the kernels that are loaded."""


def _module(ptx: str) -> Module:
    with _lock:
        known = _modules.get(ptx)
        if known is None:
            known = _modules[ptx] = Module(_parsed(ptx))
        return known


def load(
    ptx: str,
    entry: str | None = None,
    *,
    checks: bool = True,
    drop: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Kernel:
    """A kernel of a PTX text; without `entry`, its only one.

    drop: leaves out this one of its `barriers`. Raises NotCheckable for instructions that can't
    be run here, BuildError if g++ fails.
    """
    key = (ptx, entry, checks, drop)
    with _lock:
        known = _loaded.get(key)
    if known is not None:
        return known
    made = _load(ptx, entry, checks, drop, say)
    with _lock:
        known = _loaded.setdefault(key, made)
        while len(_loaded) > MOST_LOADED:
            _loaded.pop(next(iter(_loaded)))
    return known


_loaded: dict[tuple[str, str | None, bool, int | None], Kernel] = {}
MOST_LOADED = 256


def barriers(ptx: str, entry: str | None = None) -> tuple[Synchronisation, ...]:
    """The barriers, waits and fences of a kernel, in the order of its code."""
    module = _module(ptx)
    return synchronisations(flatten(module.program, _entry(module, entry)))


def _entry(module: Module, entry: str | None) -> str:
    kernels = module.program.kernels()
    name = entry or (kernels[0] if len(kernels) == 1 else "")
    if name not in kernels:
        raise LaunchError(f"no kernel {entry!r} in this PTX; those in it: {', '.join(kernels)}")
    return name


def _load(
    ptx: str, entry: str | None, checks: bool, drop: int | None, say: Callable[[str], None]
) -> Kernel:
    module = _module(ptx)
    name = _entry(module, entry)
    function = flatten(module.program, name)
    if drop is not None:
        function = without(function, drop)
    code = emit(module.program, function)
    built, build = library(name, code.source, say, tensor=code.tensor)
    with _lock:
        _variables(module, code)
    return Kernel(name, module, code, built.kernel, build, checks)


def _variables(module: Module, code: Code) -> None:
    """Memory for the module's variables that this kernel names, with their initial values."""
    new = [v for v in code.windows if v.name not in module.variables]
    for variable in new:
        made = np.zeros(max(variable.bytes, 1) + 64, np.uint8)
        if variable.values:
            made[: len(variable.values)] = np.frombuffer(variable.values, np.uint8)
        module.variables[variable.name] = made[: max(variable.bytes, 1)]
    numbers = {v.name: number for number, v in enumerate(module.program.windows())}
    for variable in new:
        for offset, symbol, addend in variable.addresses:
            if symbol not in numbers:
                raise NotCheckable(f"{variable.name} holds the address of {symbol}")
            address = ((FIRST_WINDOW + numbers[symbol]) << WINDOW_SHIFT) + addend
            module.variables[variable.name][offset : offset + 8] = np.frombuffer(
                address.to_bytes(8, "little"), np.uint8
            )
