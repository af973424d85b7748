"""What a function that nobody marked is made of: the globals that it reaches, and so its way."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any


def reached(function: Callable[..., Any]) -> dict[str, Any]:
    """Module-level values that a function, or what it calls in its module, refers to by name."""
    found: dict[str, Any] = {}
    todo: list[Any] = [function]
    seen: set[int] = set()
    while todo:
        value = inspect.unwrap(todo.pop()) if callable(todo[-1]) else todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if inspect.isclass(value):
            todo += [m for m in vars(value).values() if isinstance(m, FunctionType)]
        if not isinstance(value, FunctionType):
            continue
        for name in _names(value.__code__):
            if name in value.__globals__ and name not in found:
                found[name] = value.__globals__[name]
                if _own(found[name], value.__module__):
                    todo.append(found[name])
    return found


def _own(value: Any, module: str) -> bool:
    return isinstance(value, (FunctionType, type)) and value.__module__ == module


def _names(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if isinstance(instruction.argval, str):
            yield instruction.argval
        if isinstance(instruction.argval, CodeType):
            yield from _names(instruction.argval)


def way_of(function: Callable[..., Any]) -> str:
    """The way that a function is written in: by the compilers whose kernels it reaches."""
    values = list(reached(function).values())
    modules = {type(v).__module__.split(".")[0] for v in values}
    imported = {v.__name__.split(".")[0] for v in values if isinstance(v, ModuleType)}
    if "triton" in modules:
        return "triton"
    if "numba" in modules:
        return "numba"
    if "numpy" in imported and "torch" not in imported:
        return "python"
    return "eager"


def autotuners(function: Callable[..., Any]) -> dict[str, Any]:
    """Kernels under @triton.autotune that a function reaches, by their name."""
    return {
        name: value
        for name, value in reached(function).items()
        if type(value).__name__ == "Autotuner" and type(value).__module__.startswith("triton")
    }
