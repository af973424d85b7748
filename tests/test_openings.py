"""The openings of the library's sources: what each computes, its shapes, bytes and FLOPs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

OPS = Path(__file__).resolve().parents[1] / "src" / "assay" / "ops"
KINDS = (".cu", ".cuh", ".cpp", "_triton.py", "_numba.py")
PARTS = ("shapes", "bytes", "FLOPs")


def holds_no_kernel(name: str, text: str) -> bool:
    """Whether a file is excepted. A .cu never is: where it has functors, a header maps them."""
    if name.endswith(".cuh"):
        return "__global__" not in text
    return name.endswith("_triton.py") and "triton.jit" not in text


def opening(name: str, text: str) -> str:
    """A module's docstring; else the lines of comment that a source begins with."""
    if name.endswith(".py"):
        return ast.get_docstring(ast.parse(text)) or ""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].removeprefix(" "))
    return "\n".join(lines)


def missing(name: str, text: str) -> list[str]:
    """What an opening does not say. A part is a line that its name begins, and says something."""
    if holds_no_kernel(name, text):
        return []
    said = opening(name, text)
    lacks = [part for part in PARTS if not re.search(rf"^{part} +\S", said, re.MULTILINE)]
    first = said.split("\n")[0].strip()
    if not first or first.startswith(PARTS):
        lacks.insert(0, "what it computes")
    return lacks


def test_every_source_opens_with_what_it_computes_shapes_bytes_and_flops() -> None:
    paths = [path for path in sorted(OPS.rglob("*")) if path.name.endswith(KINDS)]
    seen = {kind: sum(path.name.endswith(kind) for path in paths) for kind in KINDS}
    assert min(seen.values()) > 0, seen
    assert min(seen[".cu"], seen["_triton.py"]) > 20, seen
    found = {str(path.relative_to(OPS)): missing(path.name, path.read_text()) for path in paths}
    assert not {name: lacks for name, lacks in found.items() if lacks}


CU = """\
// y = x + 1, element by element.
//
// shapes  x, y: n elements
// bytes   2 * n * sizeof(T)
// FLOPs   n

// shapes
__global__ void k(float* y, const float* x) {}
"""
PYTHON = '''\
"""y = x + 1, element by element.

shapes  x, y: n elements
bytes   2 * n * itemsize
FLOPs   n
"""

@triton.jit
def kernel(y, x):
    """FLOPs   none"""
'''
BOTH = [("k.cu", CU), ("k_triton.py", PYTHON), ("k_numba.py", PYTHON), ("k.cuh", CU), ("k.cpp", CU)]


@pytest.mark.parametrize(("name", "text"), BOTH)
def test_an_opening_that_lacks_a_part_is_found(name: str, text: str) -> None:
    assert missing(name, text) == []
    lines = text.splitlines(keepends=True)
    for part in PARTS:
        at = next(i for i, line in enumerate(lines) if part in line)
        without = "".join(lines[:at] + lines[at + 1 :])
        assert missing(name, without) == [part]
        mark = "" if name.endswith(".py") else "// "
        empty = "".join([*lines[:at], f"{mark}{part}\n", *lines[at + 1 :]])
        assert missing(name, empty) == [part], "a name that says nothing"
        inside = "".join([*lines[:at], f"{mark}some {lines[at][len(mark) :]}", *lines[at + 1 :]])
        assert missing(name, inside) == [part], "a name that begins no line"
        assert missing(name, f"{without}{mark or '# '}{part}   n\n") == [part], "it comes too late"
    unsaid = text.replace("y = x + 1, element by element.", "")
    assert missing(name, unsaid) == ["what it computes"]
    labelled = text.replace("y = x + 1, element by element.", "bytes   n")
    assert missing(name, labelled) == ["what it computes"]


@pytest.mark.parametrize("name", [name for name, _ in BOTH])
def test_a_source_without_an_opening_lacks_all(name: str) -> None:
    bare = (
        "import triton\n@triton.jit\ndef k(): ...\n" if name.endswith(".py") else "__global__ x;\n"
    )
    assert missing(name, bare) == ["what it computes", *PARTS]


def test_what_holds_no_kernel_is_excepted() -> None:
    assert missing("k.cuh", "// Helpers.\n__device__ float f();\n") == []
    assert missing("k_triton.py", '"""Sizes."""\nBLOCK = 8\n') == []
    assert missing("k.cu", "// Functors.\nstruct F {};\n") == list(PARTS)
    assert missing("k.cpp", "// A loop.\nvoid f() {}\n") == list(PARTS)
    assert missing("k_numba.py", '"""Sizes."""\nBLOCK = 8\n') == list(PARTS)
