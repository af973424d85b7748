"""The levels between a kernel as it is written and what the hardware runs, in order, as a table."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import AssayError

COMPILED = ("triton", "cuda", "numba", "extension", "cpp", "compiled")
"""Ways of which something is compiled; each has a file here with `collect(pick, arch)`."""
GPU = tuple(way for way in COMPILED if way != "cpp")
BY_TRITON = ("triton", "compiled")


@dataclass(frozen=True)
class Level:
    """One level: what it is, which ways have it, and how its language begins a comment."""

    name: str
    what: str
    ways: tuple[str, ...]
    comment: str = "//"


LEVELS = {
    level.name: level
    for level in (
        Level("fx", "FX graph: aten's operations, by torch", ("compiled",), "#"),
        Level("inductor", "Inductor's output code: Triton and Python", ("compiled",), "#"),
        Level("ttir", "TTIR: MLIR of Triton's dialect, still without threads", BY_TRITON),
        Level("ttgir", "TTGIR: MLIR with layouts: which thread has what", BY_TRITON),
        Level("llir", "LLVM IR", BY_TRITON, ";"),
        Level("ptx", "PTX: for a virtual machine with registers without number", GPU),
        Level("sass", "SASS: what the hardware runs, by ptxas", GPU),
        Level("log", "what the compiler said", COMPILED, "#"),
        Level("asm", "machine code of the CPU, by objdump", ("cpp", "extension"), "#"),
    )
}
"""Text of compilers alone. What is computed of it, or of a run, is a view (commands/showing.py)."""


def check(name: str, views: tuple[str, ...]) -> None:
    """Raises AssayError for what is neither a level nor a view, naming what there is."""
    if name not in views and name not in LEVELS:
        known = ", ".join((*views, *LEVELS))
        raise AssayError(f"--level {name}: there is no such level; say one of {known}")
