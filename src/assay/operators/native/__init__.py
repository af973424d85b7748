"""Ordinary calls of operators without Python: a C++ module, built once, that does what Python does.

`build()` compiles it (`assay tune` does so on a GPU); nothing else ever compiles it. Where it was
built, operators find it in the cache when they first plan a call that it serves. Where it is not,
they run as before, in Python, and `reason()` says why.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Protocol

from ...types import Build
from . import building


class Renewable(Protocol):
    """What looks for the module again: see direct.py."""

    def renew(self) -> None: ...


class _State:
    """Of this process: the module, once it was looked for."""

    def __init__(self) -> None:
        self.module: Any = None
        self.reason: str | None = None
        """Why there is no module; None: nobody looked yet."""
        self.off = False
        self.callers: weakref.WeakSet[Any] = weakref.WeakSet()


KINDS = {"Tensor": "t", "bool": "b", "SymInt": "i", "float": "f"}
"""Inputs that it takes, as a schema calls them, and its letters for them."""
_state = _State()
OFF = "it is switched off: assay.operators.native.switch(True)"


def build(say: Callable[[str], None] = lambda _: None) -> Build:
    """Compiles the module if it is not in the cache. What it took, and the compiler's log.

    Operators of this process use it from then on. say: told when another process is waited for.
    Raises AssayError if there is no compiler, or with the compiler's first error.
    """
    made = building.build(say)
    _state.reason = None
    _renew()
    return made


def module() -> Any:
    """The module, or None: `reason()` says why. It is looked for in the cache, once a process."""
    if _state.off:
        return None
    if _state.module is None and _state.reason is None:
        _state.module, _state.reason = building.load()
    return _state.module


def reason() -> str:
    """Why calls of this process are not native; empty if they may be."""
    if _state.off:
        return OFF
    module()
    return _state.reason or ""


def refuse(why: str) -> None:
    """Lets all calls of this process stay in Python, for this reason."""
    _state.module, _state.reason = None, why


def switch(on: bool) -> None:
    """Whether operators of this process use the module where it is built; they do unless told."""
    _state.off = not on
    _renew()


def known(caller: Renewable) -> None:
    """Notes one that has to look again when the module is built or switched."""
    _state.callers.add(caller)


def _renew() -> None:
    for caller in list(_state.callers):
        caller.renew()
