"""What in a file a change touches: the Op itself, or only some variants.

A file is split into its top-level statements. The *core* is all that decides what the Ops are:
every statement that is not a function, every function that one of those names, and so on. What is
left are functions that nothing but variants can reach. Text decides, so a function counts as
reached where its name is written at all, also as an attribute; where code may look names up as it
runs (`globals()`, `getattr`), all of the file is core.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator

MARKS = frozenset({"variant", "launcher", "jit", "njit", "autotune", "heuristics"})
"""Decorators that do not run the function they are given."""
DYNAMIC = frozenset(
    {"globals", "vars", "locals", "getattr", "eval", "exec", "compile", "__dict__", "__import__"}
    | {"import_module", "modules", "attrgetter", "methodcaller", "getmembers", "getattr_static"}
)
WORD = re.compile(r"[^\W\d]\w*")
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Parts:
    """A Python file's top-level parts, as text without comments and positions."""

    def __init__(self, source: str):
        """Raises SyntaxError for what is no Python."""
        body = ast.parse(source).body
        free = [node for node in body if isinstance(node, Function) and _only_marked(node)]
        roots = [node for node in body if node not in free]
        headers = [part for node in free for part in _header(node)]
        named = set(_names([*roots, *headers]))
        if named & DYNAMIC:
            self._free: dict[str, list[ast.AST]] = {}
            self.core = _digest(body)
            return
        reached: list[ast.AST] = []
        while True:
            found = [node for node in free if node.name in named]
            if not found:
                break
            free = [node for node in free if node not in found]
            reached += found
            named |= set(_names(found))
        if named & DYNAMIC:
            reached, free = [*reached, *free], []
        self._free = {}
        for node in free:
            self._free.setdefault(node.name, []).append(node)
        self.core = _digest([*roots, *headers, *reached])
        """Digest of what decides what the Ops are."""

    def closure(self, name: str) -> str:
        """Digest of a function outside the core with all that it reaches there; empty: in it."""
        todo, seen = [name], set()
        nodes: list[ast.AST] = []
        while todo:
            one = todo.pop()
            if one in seen or one not in self._free:
                continue
            seen.add(one)
            nodes += self._free[one]
            todo += sorted(set(_names(self._free[one])))
        return _digest(nodes) if nodes else ""


def _only_marked(node: Function) -> bool:
    """Whether defining it runs nothing of it."""
    return all(_called(decorator) in MARKS for decorator in node.decorator_list)


def _called(node: ast.expr) -> str:
    """The last name of a decorator: `jit` of `@triton.jit` and of `@numba.cuda.jit(...)`."""
    if isinstance(node, ast.Call):
        return _called(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _header(node: Function) -> Iterator[ast.AST]:
    """What runs when a function is defined."""
    yield from node.decorator_list
    yield from ast.walk(node.args)
    if node.returns is not None:
        yield node.returns


def _names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every name that is written in the nodes."""
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute):
                yield node.attr
            elif isinstance(node, ast.alias):
                yield from WORD.findall(f"{node.name} {node.asname or ''}")


def _digest(nodes: Iterable[ast.AST]) -> str:
    text = "\n".join(ast.dump(node) for node in nodes)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
