"""What is wrong with a kernel, found by running its compiled code, and what can't be run."""

from __future__ import annotations

from dataclasses import dataclass

from .ptx import Place


class NotCheckable(Exception):
    """Compiled code that can't be run here: which instruction, where, and why."""

    def __init__(self, what: str, places: tuple[Place, ...] = ()):
        place = f" at {places[-1]}" if places else ""
        super().__init__(f"not checkable: {what}{place}")
        self.what, self.places = what, places


@dataclass(frozen=True)
class Fault:
    """One thing that went wrong, with its place in the source.

    word: `out of bounds`, `read before written`, `race`, `barrier in divergent code`,
    `misaligned`, `deadlock`, `lane missing`, `read only`, `assertion`, `trap`, `endless`.
    """

    word: str
    text: str
    """One sentence: what happened, to which memory, by whom."""
    file: str = ""
    line: int = 0
    block: tuple[int, int, int] = (0, 0, 0)
    thread: tuple[int, int, int] = (0, 0, 0)
    instruction: str = ""
    other: str = ""
    """Of a race: the other party's place."""
    count: int = 1
    """How many threads met it at this line."""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file else ""
        return f"{where}{self.word}: {self.text}"
