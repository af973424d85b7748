"""`fn --like "torch.softmax(x, -1)" --input "x=normal(4096, 8192, bfloat16)"` as an Op."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from ..cases import grid
from ..errors import TargetError
from ..inputs import Make, dtype_of
from ..op import Op, parameters
from ..target import Target
from .ways import way_of

MAKERS = ("normal", "uniform", "integers", "booleans", "full")


def op(target: Target, function: Callable[..., Any]) -> Op:
    """An Op whose reference is the expression and whose one variant is the function.

    Raises TargetError for an expression or an input that does not parse.
    """
    if not callable(function):
        raise TargetError(f"{target.text}: {function!r} can't be called")
    axes = _axes(target)
    made = Op(
        _name(target),
        _reference(target.like, list(axes)),
        _inputs,
        cases=grid(**axes),
    )
    way = way_of(function)
    bound = _bound(function, list(axes), target)
    name = way if way not in ("eager", "compiled") else f"eager/{_name(target)}"
    mark = made.launcher if target.fills else made.variant
    mark(name, layouts="any" if way == "eager" else "contiguous")(bound)
    return made


def of_function(target: Target, function: Callable[..., Any]) -> Op:
    """An Op whose reference is the function itself, on the one case that `--input` gives.

    Raises TargetError for an input that does not parse.
    """
    if not callable(function):
        raise TargetError(f"{target.text}: {function!r} can't be called")
    return Op(_name(target), function, _inputs, cases=grid(**_axes(target)))


def makers(target: Target) -> tuple[tuple[str, str], ...]:
    """(name, Python) of each `--input`, as `inputs(make, ...)` would say it: `make.normal(8)`.

    dtypes are said as strings. Raises TargetError for an input that does not parse.
    """
    found = []
    for name, values in _axes(target).items():
        node = _parse(str(values[0]), f"input {name}") if isinstance(values[0], str) else None
        if isinstance(node, ast.Call):
            found.append((name, _maker(node)))
        else:
            found.append((name, repr(values[0])))
    return tuple(found)


def _maker(node: ast.Call) -> str:
    sizes = [a for a in node.args if not isinstance(a, ast.Name)]
    dtypes = [a for a in node.args if isinstance(a, ast.Name)]
    named = {str(k.arg): k.value for k in node.keywords}
    if dtypes:
        named["dtype"] = dtypes[0]
    said = [
        f"{name}={value.id!r}" if isinstance(value, ast.Name) else f"{name}={ast.unparse(value)}"
        for name, value in named.items()
    ]
    return f"make.{ast.unparse(node.func)}({', '.join([*map(ast.unparse, sizes), *said])})"


def _name(target: Target) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in target.name.split(".")[-1])


def _axes(target: Target) -> dict[str, list[Any]]:
    axes: dict[str, list[Any]] = {}
    for text in target.inputs:
        name, equals, value = text.partition("=")
        name, value = name.strip(), value.strip()
        if not equals or not name.isidentifier():
            raise TargetError(f"--input {text!r}: write name=maker(shape, dtype) or name=number")
        parsed = _parse(value, f"--input {text!r}")
        axes.setdefault(name, []).append(value if isinstance(parsed, ast.Call) else parsed)
    if not axes:
        raise TargetError("--like needs at least one --input, e.g. --input 'x=normal(4096, 8192)'")
    return axes


def _parse(text: str, what: str) -> Any:
    """A maker's call as it is, or a literal number, bool or string."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        raise TargetError(f"{what}: {text!r} is no expression") from None
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in MAKERS:
            raise TargetError(f"{what}: makers are {', '.join(MAKERS)}; see assay.inputs.Make")
        return node
    try:
        value = ast.literal_eval(node)
    except ValueError:
        raise TargetError(f"{what}: {text!r} is neither a maker's call nor a number") from None
    if not isinstance(value, (bool, int, float, str)):
        raise TargetError(f"{what}: {text!r} is a {type(value).__name__}; give a number or a maker")
    return value


def _inputs(make: Make, **case: Any) -> tuple[Any, ...]:
    values = []
    for name, text in case.items():
        is_call = isinstance(text, str) and text.split("(")[0].strip() in MAKERS
        values.append(_call(make, name, text) if is_call else text)
    return tuple(values)


def _call(make: Make, name: str, text: str) -> Any:
    node = _parse(text, f"input {name}")
    sizes: list[Any] = []
    keywords: dict[str, Any] = {}
    for argument in node.args:
        if isinstance(argument, ast.Name):
            keywords["dtype"] = dtype_of(argument.id)
        else:
            sizes.append(_literal(argument, name))
    for keyword in node.keywords:
        is_name = isinstance(keyword.value, ast.Name)
        keywords[keyword.arg] = keyword.value.id if is_name else _literal(keyword.value, name)
    try:
        return getattr(make, node.func.id)(*sizes, **keywords)
    except TypeError as error:
        raise TargetError(f"input {name}={text}: {error}") from None


def _literal(node: ast.expr, name: str) -> Any:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.LShift, ast.Pow)):
        left, right = _literal(node.left, name), _literal(node.right, name)
        if isinstance(node.op, ast.Mult):
            return left * right
        return left << right if isinstance(node.op, ast.LShift) else left**right
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise TargetError(f"input {name}: sizes are numbers, e.g. normal(4096, 1 << 13)") from None


def _reference(expression: str, names: list[str]) -> Callable[..., Any]:
    """A function of the inputs that evaluates the expression; its line can be pointed at."""
    try:
        code = compile(expression, "--like", "eval")
    except SyntaxError as error:
        raise TargetError(f"--like {expression!r}: {error.msg}") from None

    def reference(*values: Any) -> Any:
        import math

        import torch

        space = {"torch": torch, "F": torch.nn.functional, "math": math}
        try:
            return eval(code, {**space, **dict(zip(names, values))})
        except NameError as error:
            raise TargetError(
                f"--like {expression!r}: {error}; it knows torch, F, math and the inputs "
                f"{', '.join(names)}"
            ) from None

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    reference.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in names]
    )
    return reference


def _bound(function: Callable[..., Any], names: list[str], target: Target) -> Callable[..., Any]:
    """The function with inputs passed by name where its parameters have those names.

    So an input that only the expression needs is not forced on the function.
    """
    known = parameters(function)
    outputs = 1 if target.fills else 0
    if not known or not set(names) & set(known[outputs:]):
        return function
    taken = [name for name in names if name in known]

    def bound(*values: Any, **knobs: Any) -> Any:
        given = dict(zip(names, values[outputs:]))
        return function(*values[:outputs], **{n: given[n] for n in taken}, **knobs)

    bound.__wrapped__ = function  # type: ignore[attr-defined]
    bound.__module__ = function.__module__
    return bound
