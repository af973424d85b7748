"""A kernel that was compiled for a GPU, ready to be launched on the CPU."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from threading import RLock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..errors import LaunchError
from ..types import Build
from . import limits
from .build import library
from .code import FIRST_WINDOW, WINDOW_SHIFT, Code
from .drop import Synchronisation, synchronisations, without
from .emit import emit
from .faults import NotCheckable
from .inline import flatten
from .launch import Launch, Launched, Snapshot
from .memory import Memory, Window
from .parameters import Parameters
from .parse import parse
from .ptx import Program
from .record import recording

DEFAULT_ARCH = "sm_80"
"""What kernels are compiled for where they are judged without a GPU."""
SNAPSHOT_BYTES = 64 << 20
MOST_CORES = 64
OWN_WINDOWS = 16
"""The first windows are the module's variables, as many as a multiple of this. So addresses that
a kernel keeps in memory mean the same in the next launch, also in one of another module."""


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
        before = [Snapshot(window) for window in windows if window.bytes] if threads > 1 else []
        given = (self, *three, parameters, windows, shared, order, one_program, recorded)
        made = Launch(*given, threads)
        made.run()
        if made.conflict:  # found between cores: run again on one, for the exact place
            for snapshot in before:
                snapshot.restore()
            made = Launch(*given, 1)
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
