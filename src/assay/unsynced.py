"""Warns of a user's own timing that sees the launch of GPU work and not the work.

A kernel is queued, not run, when its call returns: between `t = time.time()` and `time.time() - t`
something must wait for the GPU (CUDA C++ Programming Guide, Asynchronous Concurrent Execution).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

CLOCKS = frozenset({"time", "perf_counter", "perf_counter_ns", "monotonic", "default_timer"})
WAITS = frozenset(
    {"synchronize", "wait", "item", "cpu", "tolist", "numpy", "elapsed_time", "block"}
)
"""Calls that wait for the GPU, or end in something that does."""
GPU_WORDS = ("cuda", "triton")


def warnings(source: str, file: str) -> list[str]:
    """One sentence for each unsynchronised timing in a text; none in a text without GPU work.

    A text that is not Python gives none: whoever imports it says what is wrong with it.
    """
    if not any(word in source for word in GPU_WORDS):
        return []
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    bodies = [n for n in ast.walk(tree) if isinstance(n, (ast.Module, ast.FunctionDef))]
    return [
        f"{file}:{line}: this clock stops when the GPU work is queued, not when it is done: call "
        "torch.cuda.synchronize() before both readings, or let `assay bench` time it"
        for body in bodies
        for line in _unsynced(body)
    ]


def _unsynced(body: ast.Module | ast.FunctionDef) -> Iterator[int]:
    """Lines of `now() - begun` with calls since `begun = now()`, none of which waits."""
    begun: dict[str, int] = {}
    calls: list[tuple[int, str]] = []
    for node in _own(body):
        if isinstance(node, ast.Call):
            calls.append((node.lineno, _name(node.func)))
        if isinstance(node, ast.Assign) and _reads_clock(node.value):
            begun |= {t.id: node.lineno for t in node.targets if isinstance(t, ast.Name)}
    for node in _own(body):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
            continue
        name = node.right.id if isinstance(node.right, ast.Name) else ""
        ended = node.left.id if isinstance(node.left, ast.Name) else ""
        start, end = begun.get(name), begun.get(ended, node.lineno)
        if start is None or not (_reads_clock(node.left) or ended in begun):
            continue
        between = [called for line, called in calls if start < line <= end and called not in CLOCKS]
        if between and not WAITS & set(between):
            yield end


def _own(body: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a body without those of functions in it."""
    for child in ast.iter_child_nodes(body):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        yield child
        yield from _own(child)


def _reads_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _name(node.func) in CLOCKS and not node.args


def _name(function: ast.AST) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
