"""The levels between a kernel as it is written and what the hardware runs, in order, as a table."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import AssayError

GPU = ("triton", "compiled", "cuda", "numba", "extension")


@dataclass(frozen=True)
class Level:
    """One level: who writes it, in which language, and which ways have it."""

    name: str
    what: str
    ways: tuple[str, ...]
    lexer: str = "text"
    """Pygments' name of the language, for colours."""
    comment: str = "//"


LEVELS = {
    level.name: level
    for level in (
        Level("fx", "FX graph: aten's operations, by torch", ("compiled",), "python", "#"),
        Level(
            "inductor", "Inductor's output code: Triton and Python", ("compiled",), "python", "#"
        ),
        Level("ttir", "TTIR: MLIR of Triton's dialect, still without threads", GPU[:2], "llvm"),
        Level("ttgir", "TTGIR: MLIR with layouts: which thread has what", GPU[:2], "llvm"),
        Level("llir", "LLVM IR", GPU[:2], "llvm", ";"),
        Level("ptx", "PTX: for a virtual machine with registers without number", GPU, "ptx"),
        Level("sass", "SASS: what the hardware runs, by ptxas", GPU, "text"),
        Level("log", "what the compiler said", ("cpp", "cuda", "numba", "extension"), "text", "#"),
        Level("asm", "machine code of the CPU, by objdump", ("cpp", "extension"), "gas", "#"),
    )
}
"""Text of compilers alone. What is computed of it, or of a run, is a view (commands/showing.py)."""


def level_of(name: str, more: tuple[str, ...] = ()) -> Level | None:
    """The level of that name; None for one of `more`. Raises AssayError naming what there is."""
    if name in more:
        return None
    if name not in LEVELS:
        known = ", ".join((*more, *LEVELS))
        raise AssayError(f"--level {name}: there is no such level; say one of {known}")
    return LEVELS[name]
