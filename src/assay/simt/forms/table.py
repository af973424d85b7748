"""The strict table of PTX forms: what a form means, and the refusal of every other.

A *form* is an opcode with all its modifiers, `ld.global.v4.f32`. A row of the table has a pattern:
literal text, `[...]` for an optional part, `{name:a|b}` for a choice, where the choice may be the
name of one of the `SETS`. The whole form must match one row; anything else is not checkable.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..emit import Emitter
    from ..ptx import Instruction

SETS = {
    "INT": "s16|u16|s32|u32|s64|u64",
    "SIGNED": "s16|s32|s64",
    "UNSIGNED": "u16|u32|u64",
    "BITS": "b16|b32|b64",
    "FLOAT": "f32|f64",
}
SIZES = {
    **{"b8": 1, "s8": 1, "u8": 1, "b16": 2, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "b32": 4},
    **{"s32": 4, "u32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "b64": 8, "s64": 8, "u64": 8},
    **{"f64": 8, "pred": 4, "b128": 16, "tf32": 4, "e4m3x2": 2, "e5m2x2": 2},
}
"""Bytes of a register of each PTX type; a predicate is kept as a 32-bit 0 or 1."""


@dataclass(frozen=True)
class Match:
    """A form and the row it belongs to."""

    form: str
    row: Row
    groups: dict[str, str]


@dataclass(frozen=True)
class Lane:
    """A form whose result in a lane depends on that lane's operands alone.

    result, operands: PTX types, where `{T}` is what the pattern captured as T; `imm` is an
    immediate. code: a C++ expression over the operands {0}, {1}, ... as C++ values of their types.
    second: the expression of a second destination, a predicate. where: more names from the groups.
    """

    pattern: str
    result: str
    operands: str
    code: str
    second: str = ""
    where: Callable[[dict[str, str]], dict[str, str]] | None = None


@dataclass(frozen=True)
class Values:
    """A form like `Lane` whose destinations or sources depend on names: packs, symbols, registers
    of the machine. `make` gives (destination, its PTX type, C++ expression) for each.
    """

    pattern: str
    make: Callable[[Match, Instruction, Emitter], list[tuple[str, str, str]]]


@dataclass(frozen=True)
class Action:
    """A form that touches memory, other lanes or control flow: statements made by a function."""

    pattern: str
    emit: Callable[[Match, Instruction, Emitter], str]
    site: bool = False
    """Whether each instruction of it is counted and can be at fault."""


Row = Lane | Values | Action

TOKEN = re.compile(r"\{(\w+):([^}]+)\}|\[|\]|[^\[\]{}]+")


def expression(pattern: str) -> str:
    """The regular expression of a pattern."""
    text, depth = "", 0
    parts = list(TOKEN.finditer(pattern))
    if "".join(p.group(0) for p in parts) != pattern:
        raise ValueError(f"form pattern {pattern!r}: stray bracket or brace")
    for index, part in enumerate(parts):
        token = part.group(0)
        if token == "[":
            depth += 1
            text += "(?:"
        elif token == "]":
            depth -= 1
            text += ")?"
        elif part.group(1):
            choices = SETS.get(part.group(2), part.group(2))
            text += f"(?P<{part.group(1)}>{'|'.join(map(re.escape, choices.split('|')))})"
        elif depth and re.fullmatch(r"\.\w+", token) and parts[index - 1].group(0) == "[":
            word = token[1:]
            named = word.isidentifier() and parts[index + 1].group(0) == "]"
            text += rf"\.(?P<{word}>{word})" if named else re.escape(token)
        else:
            text += re.escape(token)
    return text


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Only once asked for: a kernel uses few of some hundred forms."""
    return re.compile(expression(pattern))


def options(pattern: str) -> Iterable[str]:
    """Every form that a pattern stands for."""
    pattern = re.sub(
        r"\{\w+:([^}]+)\}", lambda m: "{" + SETS.get(m.group(1), m.group(1)) + "}", pattern
    )
    found = re.search(r"\[([^\[\]]*)\]|\{([^{}]*)\}", pattern)
    if not found:
        yield pattern
        return
    choices = ["", found.group(1)] if found.group(2) is None else found.group(2).split("|")
    for choice in choices:
        yield from options(pattern[: found.start()] + choice + pattern[found.end() :])


@dataclass
class Table:
    """All rows, found by opcode."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    known: dict[str, Match | None] = field(default_factory=dict)

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            opcode = re.split(r"[.\[{]", row.pattern, maxsplit=1)[0]
            self.rows.setdefault(opcode, []).append(row)

    def find(self, form: str) -> Match | None:
        """The row of a form, or None: it is not in the table."""
        if form not in self.known:
            self.known[form] = self._search(form)
        return self.known[form]

    def _search(self, form: str) -> Match | None:
        for row in self.rows.get(form.split(".", 1)[0], ()):
            found = _compiled(row.pattern).fullmatch(form)
            if found:
                groups = {name: text or "" for name, text in found.groupdict().items()}
                if isinstance(row, Lane) and row.where:
                    groups |= row.where(groups)
                return Match(form, row, groups)
        return None
