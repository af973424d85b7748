"""Tampering: what judges and times is noted before user code is imported, and compared afterwards.

Kept for each place are the objects that its names stand for and, for functions written in Python,
their code and defaults; so neither `torch.cuda.Event.elapsed_time = mine` nor
`assay.verdict.shipped.ship.__code__ = mine` goes unseen. So are active modes, kernels of `aten`
that were replaced, and the trace and profile functions. Values inside objects, closures and frames
of this process are not compared: docs/verdicts.md says what follows from that.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack as function_modes
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack as dispatch_modes

TIMERS = (
    "time",
    "torch.cuda.Event",
    "torch.cuda.Stream",
    "torch.cuda",
    "assay.clock.cpu",
    "assay.clock.events",
    "assay.clock.timing",
)
"""Compared after every sample; all the others at less hurried moments."""
PLACES = (
    "builtins",
    "gc",
    "inspect",
    "json",
    "mmap",
    "msgspec",
    "msgspec.json",
    "msgspec.msgpack",
    "msgspec.structs",
    "numpy",
    "os",
    "pathlib.Path",
    "random",
    "random.Random",
    "select",
    "socket",
    "socket.socket",
    "struct",
    "threading",
    "threading.Thread",
    "torch",
    "torch.Generator",
    "torch.Tensor",
    "torch._C.TensorBase",
    "torch.library",
    "torch.nn.functional",
    "torch.nn.Parameter",
    "torch.profiler",
    "torch.random",
    "torch.testing",
    "torch.UntypedStorage",
    "torch.utils._python_dispatch.TorchDispatchMode",
)
REPLACED_BY_TORCH = frozenset({"torch.manual_seed", "torch.Storage"})
"""torch._dynamo wraps the first when it is imported; the second follows the default dtype."""
TRACED = (sys.gettrace, sys.getprofile)
ATEN = "aten/"


class Tampered(Exception):
    """A function that judges or times was replaced; its text names it."""


class Taken:
    """The functions as they were. Made before any code of the user's runs."""

    def __init__(self) -> None:
        own = [name for name in sorted(sys.modules) if name.startswith("assay.")]
        own = [name for name in own if not name.startswith("assay.ops.") and name not in TIMERS]
        self._timers = list(_noted([name for name in TIMERS if _at(name) is not None]))
        self._others = list(_noted([*PLACES, *own]))
        self._implemented = set(torch.library._impls)
        self._traced = [now() for now in TRACED]
        self._modes: set[type] = {DeviceContext}

    def allow(self, mode: type) -> None:
        """A mode that the harness itself may have active."""
        self._modes.add(mode)

    def check(self) -> None:
        """Raises Tampered, naming the first function that is another one now."""
        self.check_timers()
        for noted in self._others:
            noted.check()
        replaced = {name for name in torch.library._impls - self._implemented if _replaces(name)}
        if replaced:
            _, name, key = min(replaced).split("/")
            raise Tampered(f"aten::{name} for {key}")
        for was, now in zip(self._traced, TRACED):
            if now() is not was:
                raise Tampered(f"sys.{now.__name__.replace('get', 'set')}")
        for mode in (*function_modes(), *dispatch_modes()):
            if type(mode) not in self._modes:
                raise Tampered(f"the mode {type(mode).__qualname__} was left active")

    def changed(self) -> str:
        """The function that is another one now, or empty."""
        try:
            self.check()
        except Tampered as found:
            return str(found)
        return ""

    def check_timers(self) -> None:
        """The same for clocks alone, which takes microseconds."""
        for noted in self._timers:
            noted.check()


@functools.cache
def taken() -> Taken:
    """The functions as they were at the first call: in the fork server, for all of its children."""
    return Taken()


class _Place:
    """A module or a class, with what its names stand for."""

    def __init__(self, name: str, place: Any):
        self.name = name
        self._now = vars(place)
        self._was = [(key, value) for key, value in self._now.items() if _counts(name, key, value)]
        self._codes = [
            (key, function, function.__code__, function.__defaults__)
            for key, value in self._was
            for function in _functions(value)
            if not _is_noted_elsewhere(function, name)
        ]
        self._size = len(self._now)
        self._names = frozenset(self._now)
        bases = place.__mro__[1:] if isinstance(place, type) else (builtins,)
        self._below = frozenset(name for base in bases for name in vars(base))

    def check(self) -> None:
        now = self._now.get
        for key, value in self._was:
            if now(key) is not value:
                raise Tampered(f"{self.name}.{key}")
        for key, function, code, defaults in self._codes:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                raise Tampered(f"{self.name}.{key}")
        if len(self._now) != self._size:  # a new name may stand in front of an inherited one
            hiding = (self._now.keys() - self._names) & self._below
            if hiding:
                raise Tampered(f"{self.name}.{min(hiding)}")


def _noted(names: list[str]) -> Iterator[_Place]:
    for name in names:
        place = _at(name)
        yield _Place(name, place)
        if isinstance(place, ModuleType) and name.startswith("assay."):
            for key, value in list(vars(place).items()):
                if isinstance(value, type) and value.__module__ == name:
                    yield _Place(f"{name}.{key}", value)


def _at(name: str) -> Any:
    """The module of that name, or what stands behind it in one; None if it was not imported."""
    if name in sys.modules:
        return sys.modules[name]
    owner, _, key = name.rpartition(".")
    return getattr(_at(owner), key, None) if owner else None


def _counts(place: str, key: str, value: Any) -> bool:
    if f"{place}.{key}" in REPLACED_BY_TORCH:
        return False
    return callable(value) or isinstance(
        value, (ModuleType, property, staticmethod, classmethod, functools.cached_property)
    )


def _functions(value: Any) -> Iterator[FunctionType]:
    """The functions written in Python that a name stands for, its wrappers looked through."""
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, FunctionType):
            yield value
            todo.append(value.__dict__.get("__wrapped__"))
        elif isinstance(value, (staticmethod, classmethod)):
            todo.append(value.__func__)
        elif isinstance(value, property):
            todo += [value.fget, value.fset]


def _is_noted_elsewhere(function: FunctionType, place: str) -> bool:
    """Whether it is one of ours that this place only imports; its own module is a place too."""
    home = str(function.__module__)
    return home in sys.modules and home.startswith("assay.") and not place.startswith(home)


def _replaces(name: str) -> bool:
    """Whether Python code registered it for an operator of torch; for shapes alone it may."""
    return name.startswith(ATEN) and "Meta" not in name
