"""A function's source with everything that it needs, so that it can stand in a file of its own."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from ...op import module_of

PLAIN = (bool, int, float, str, bytes, type(None))


class Bound(Exception):
    """The function can't be taken out of its file; the text says why."""


@dataclass
class Taken:
    """What a file needs to hold."""

    imports: dict[str, None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    """Name to definition, what is needed first first."""


def take(taken: Taken, function: Callable[..., Any], name: str) -> None:
    """Adds a function's source under a name, and what it uses. Raises Bound."""
    function = inspect.unwrap(function)
    node, text = _definition(function)
    if function.__closure__:
        raise Bound(f"{node.name} uses variables of the function around it")
    module = module_of(function)
    for used in _free(node):
        if used == node.name or hasattr(builtins, used):
            continue
        if not hasattr(module, used):
            raise Bound(f"{node.name} uses {used}, which its file does not define")
        _value(taken, used, getattr(module, used), module)
    if name != node.name:
        text = text.replace(f"def {node.name}(", f"def {name}(", 1)
    taken.texts[name] = text


def _definition(function: Any) -> tuple[ast.FunctionDef, str]:
    try:
        text = textwrap.dedent(inspect.getsource(function))
        node = ast.parse(text).body[0]
    except (OSError, TypeError, SyntaxError):
        raise Bound(f"{function} has no source of its own") from None
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        raise Bound(f"{getattr(function, '__name__', function)} is no plain `def`")
    return node, text.rstrip() + "\n"


def _free(node: ast.FunctionDef) -> list[str]:
    """Names that a function reads and does not make."""
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    made = {n.id for n in names if not isinstance(n.ctx, ast.Load)}
    made |= {a.arg for n in ast.walk(node) if isinstance(n, ast.arguments) for a in _all(n)}
    return list(dict.fromkeys(n.id for n in names if n.id not in made))


def _all(given: ast.arguments) -> list[ast.arg]:
    more = [given.vararg, given.kwarg]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *(a for a in more if a)]


def _value(taken: Taken, name: str, value: Any, module: Any) -> None:
    if isinstance(value, ModuleType):
        plain = f"import {value.__name__}"
        taken.imports[plain if name == value.__name__ else f"{plain} as {name}"] = None
    elif isinstance(value, PLAIN):
        taken.texts.setdefault(name, f"{name} = {value!r}\n")
    elif inspect.isfunction(value) and module_of(value) is module:
        if name not in taken.texts:
            take(taken, value, name)
    elif getattr(value, "__module__", None) and hasattr(value, "__qualname__"):
        if value.__module__ == getattr(module, "__name__", "") or "." in value.__qualname__:
            raise Bound(f"it uses {name}, which is no plain function")
        renamed = "" if value.__name__ == name else f" as {name}"
        taken.imports[f"from {value.__module__} import {value.__name__}{renamed}"] = None
    else:
        raise Bound(f"it uses {name}, a {type(value).__name__}")
