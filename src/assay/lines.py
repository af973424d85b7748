"""Lines of code of a variant: its function, the kernels it calls, and its kernel source.

Blank lines, comments, docstrings and the decorators that register the function are not counted.
A source file counts whole, so variants that share one count it each. Read from the files alone:
nothing is imported.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from functools import lru_cache
from pathlib import Path
from typing import Any

from .op import Variant

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
C_WORDS = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)


def count(variant: Variant) -> int | None:
    """Lines of a variant; None where its function has no source (a built-in)."""
    code: Any = getattr(inspect.unwrap(variant.function), "__code__", None)
    if code is None or not Path(code.co_filename).is_file():
        return None
    path = Path(code.co_filename)
    node = _at(_tree(path), code.co_firstlineno)
    if node is None:
        return None
    found: set[tuple[Path, int]] = set()
    _reach(path, node, found, {node})
    return len(found) + sum(c_lines(source.read_text()) for source in _sources(variant))


def _sources(variant: Variant) -> list[Path]:
    if variant.source is None:
        return []
    beside = variant.source.with_suffix(".cu")
    both = variant.way == "extension" and beside != variant.source and beside.is_file()
    return [variant.source, *([beside] if both else [])]


def c_lines(text: str) -> int:
    """Lines of C++ or CUDA that hold more than white space and comments."""

    def kept(match: re.Match[str]) -> str:
        word = match.group()
        return word if word[0] in "\"'" else "\n" * word.count("\n")

    return sum(bool(line.strip()) for line in C_WORDS.sub(kept, text).splitlines())


@lru_cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@lru_cache
def _code(path: Path) -> frozenset[int]:
    """Numbers of the lines of a Python file that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(_tree(path)):
        documented = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            lines.difference_update(range(first.lineno, (first.end_lineno or 0) + 1))
    return frozenset(lines)


def _at(tree: ast.Module, line: int) -> Function | None:
    """The function whose first line, with its decorators, is this one."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            decorators = getattr(node, "decorator_list", [])
            if line == min([node.lineno, *(d.lineno for d in decorators)]):
                return node
    return None


def _reach(path: Path, node: ast.AST, found: set[tuple[Path, int]], seen: set[ast.AST]) -> None:
    """Adds the lines of a function and of all that it calls of its own file or of neighbours."""
    assert isinstance(node, (ast.stmt, ast.expr))
    inside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    found.update((path, line) for line in inside if line in _code(path))
    registering = [d for d in getattr(node, "decorator_list", []) if _registers(d)]
    left_out = {n for d in registering for n in ast.walk(d)}
    within = [n for n in ast.walk(node) if n not in left_out]
    # An import at the top of the file is reached, one within another function is not.
    imports = [n for n in [*within, *_tree(path).body] if isinstance(n, ast.ImportFrom)]
    own = {n.arg for n in within if isinstance(n, ast.arg)}
    names = {n.id for n in within if isinstance(n, ast.Name)} - own
    for place, name in [(path, name) for name in names] + [
        (place, alias.name)
        for each in imports
        for alias in each.names
        if (alias.asname or alias.name) in names and (place := _neighbour(path, each))
    ]:
        for other in _tree(place).body:
            if isinstance(other, (ast.FunctionDef, ast.ClassDef)) and other.name == name:
                if other in seen:
                    continue
                seen.add(other)
                decorators = [d for d in other.decorator_list if not _registers(d)]
                found.update((place, d.lineno) for d in decorators)
                _reach(place, other, found, seen)


def _registers(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Attribute) and called.attr in ("variant", "launcher")


def _neighbour(path: Path, node: ast.ImportFrom) -> Path | None:
    """The file that `from .name import ...` reads, if it lies beside this one."""
    folder = path.parents[max(0, node.level - 1)]
    place = folder / f"{(node.module or '').replace('.', '/')}.py"
    return place if place.is_file() else None
