"""SASS as nvdisasm prints it, as data: instructions with their lines of source."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ...simt.ptx import Place

SECTION = re.compile(r"^//-+ \.text\.(\S+)\s+-+$")
LINE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)(.*)$')
LABEL = re.compile(r"^(\.L_\w+):$")
CODE = re.compile(
    r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:\{\s*)?(?:@(!?\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;?\s*\}?$"
)
TARGET = re.compile(r"\bBRA[\w.]*\s.*`\((\.L_\w+)\)")


@dataclass(frozen=True)
class Instruction:
    """One instruction; `form` is the opcode with its modifiers."""

    address: int
    form: str
    operands: str
    guard: str = ""
    """The predicate: `P0`, `!P1`."""
    places: tuple[Place, ...] = ()
    """Where it comes from: the innermost line of source first, then where that was inlined."""
    text: str = ""

    @property
    def opcode(self) -> str:
        return self.form.split(".", 1)[0]


def functions(printed: str) -> dict[str, str]:
    """Text of each function among what nvdisasm printed, assembler directives left out."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in printed.splitlines():
        if section := SECTION.match(line):
            name = section.group(1)
            found[name] = []
        elif line.startswith("//-----"):
            name = ""
        elif name and (LINE.match(line) or LABEL.match(line) or CODE.match(line)):
            found[name].append(line.strip() if LINE.match(line) else line)
    return {name: "\n".join(_without_padding(lines)) + "\n" for name, lines in found.items()}


def _without_padding(lines: list[str]) -> list[str]:
    """Without what fills the last cache line: a branch to itself, then NOPs."""
    kept = list(lines)
    while kept and (not (code := CODE.match(kept[-1])) or code.group(3) == "NOP"):
        kept.pop()
    if not kept:
        return lines
    target = TARGET.search(kept[-1])
    if target and len(kept) > 1 and kept[-2] == f"{target.group(1)}:":
        del kept[-2:]
    return kept


def parse(text: str) -> list[Instruction]:
    """Instructions of one function, in order."""
    found: list[Instruction] = []
    places: tuple[Place, ...] = ()
    begun = False
    for line in text.splitlines():
        if said := LINE.match(line):
            # Lines that follow one another are one chain: where it is, and where that was inlined.
            places = (*(places if begun else ()), Place(said.group(1), int(said.group(2))))
            begun = True
        elif code := CODE.match(line):
            address, guard, form, operands = code.groups()
            at = int(address, 16)
            found.append(Instruction(at, form, operands, guard or "", places, line.strip()))
            begun = False
    return found


def labels(text: str) -> dict[str, int]:
    """Address of each label of one function."""
    found, waiting = {}, []
    for line in text.splitlines():
        if label := LABEL.match(line):
            waiting.append(label.group(1))
        elif code := CODE.match(line):
            found.update({name: int(code.group(1), 16) for name in waiting})
            waiting = []
    return found


def loops(text: str) -> Iterable[tuple[int, int]]:
    """(first, last) address of what each backward branch jumps over: a loop."""
    at = labels(text)
    for one in parse(text):
        target = TARGET.search(one.text)
        if target and at.get(target.group(1), one.address + 1) <= one.address:
            yield at[target.group(1)], one.address
