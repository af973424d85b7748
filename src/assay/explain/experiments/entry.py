"""Rewriting one entry of a PTX text, instruction by instruction, with registers of its own.

A rule is given each instruction and gives the lines in its place, or None to leave it. It may ask
for new registers and for lines that run once, before the first instruction. The text stays PTX of
the same module: parameters, variables and lines of source are as they were.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ...errors import NotRun
from ...simt.forms.table import SIZES
from ...simt.ptx import split

LINE = re.compile(r"\s*(?P<guard>@!?%?[\w$]+\s+)?(?P<form>[a-z][\w.:]*)\s+(?P<operands>[^;]*);")
DECLARED = re.compile(r"\.reg\s+\.(\w+)\s+([^;]*);")
FIRST = re.compile(r"^\s*(?:@!?%?[\w$]+\s+)?[a-z][\w.:]*\s[^;]*;", re.MULTILINE)
PREFIX = {"pred": "%xp", "b16": "%xh", "b32": "%xr", "b64": "%xd", "f64": "%xg"}


class NotTried(NotRun):
    """An experiment that can't be made of this kernel, with the reason."""


@dataclass(frozen=True)
class Instruction:
    """One instruction of the text. guard: `@%p1`, `@!%p1`, or empty."""

    guard: str
    form: str
    operands: tuple[str, ...]

    @property
    def parts(self) -> list[str]:
        """`ld`, `global`, `nc`, `f32`."""
        return self.form.split(".")

    @property
    def opcode(self) -> str:
        return self.parts[0]

    @property
    def kind(self) -> str:
        """The last part: its type."""
        return self.parts[-1]

    @property
    def bytes(self) -> int:
        """Of one element that it moves; 0 if its last part is no type that has a size."""
        return SIZES.get(self.kind, 0)

    @property
    def elements(self) -> int:
        """Of a vector access: 2, 4 or 8, else 1."""
        return next((int(p[1:]) for p in self.parts if re.fullmatch(r"v[248]", p)), 1)

    def text(self) -> str:
        return f"{self.guard + ' ' if self.guard else ''}{self.form} {', '.join(self.operands)};"


@dataclass
class New:
    """What a rule may ask for: registers, their types, lines before everything else."""

    kinds: dict[str, str]
    """PTX type of each register that the kernel declares, by its name without the number."""
    counts: Counter[str] = field(default_factory=Counter)
    setup: list[str] = field(default_factory=list)
    once: dict[str, str] = field(default_factory=dict)

    def __call__(self, kind: str) -> str:
        """A register that nothing else has."""
        self.counts[kind] += 1
        return f"{self.prefix(kind)}{self.counts[kind] - 1}"

    def prefix(self, kind: str) -> str:
        """Of its registers of a kind; longer where the text was rewritten before."""
        name = PREFIX[kind]
        while name in self.kinds:
            name += "x"
        return name

    def before(self, key: str, kind: str, lines: Callable[[str], list[str]]) -> str:
        """A register that `lines(its name)` set once, at the start of the kernel."""
        if key not in self.once:
            self.once[key] = self(kind)
            self.setup += lines(self.once[key])
        return self.once[key]

    def lane(self) -> str:
        """The number of the thread in its warp (b32)."""
        return self.before("lane", "b32", lambda name: [f"mov.u32 {name}, %laneid;"])

    def size(self, register: str) -> int:
        """Bytes of a declared register. Raises NotTried for one that is not known."""
        kind = self.kinds.get(register.rstrip("0123456789"), "")
        if kind not in SIZES:
            raise NotTried(f"the type of register {register} is not known")
        return SIZES[kind]


Rule = Callable[[Instruction, New], list[str] | None]


def rewritten(ptx: str, name: str, rule: Rule) -> tuple[str, int]:
    """The PTX with the rule applied to an entry, and how many instructions it changed.

    Raises NotTried if there is no such entry.
    """
    begin, end = body(ptx, name)
    text = ptx[begin:end]
    new, changed, made = New(_kinds(text)), 0, list[str]()
    for line in text.split("\n"):
        one = read(line)
        lines = rule(one, new) if one is not None else None
        changed += lines is not None
        made += [line] if lines is None else [f"\t{each}" for each in lines]
    registers = [
        f"\t.reg .{kind} {new.prefix(kind)}<{n}>;" for kind, n in sorted(new.counts.items())
    ]
    text = "\n".join(made)
    first = FIRST.search(text)
    at = first.start() if first else 0
    extra = "".join(f"{line}\n" for line in [*registers, *(f"\t{line}" for line in new.setup)])
    return ptx[:begin] + text[:at] + extra + text[at:] + ptx[end:], changed


def read(line: str) -> Instruction | None:
    """The instruction of a line; None if it holds none, or no whole one."""
    found = LINE.match(line)
    if not found or not found["form"]:
        return None
    guard = (found["guard"] or "").strip()
    return Instruction(guard, found["form"], tuple(split(found["operands"])))


def instructions(ptx: str, name: str) -> list[Instruction]:
    """Those of an entry, in the order of the text."""
    begin, end = body(ptx, name)
    return [one for line in ptx[begin:end].split("\n") if (one := read(line)) is not None]


def body(ptx: str, name: str) -> tuple[int, int]:
    """Where the body of an entry begins and ends, its braces left out."""
    found = re.search(rf"\.entry\s+{re.escape(name)}\s*\([^)]*\)[^{{]*\{{", ptx)
    if not found:
        raise NotTried(f"there is no entry {name} in the PTX")
    depth = 1
    for brace in re.finditer(r"[{}]", ptx[found.end() :]):
        depth += 1 if brace.group() == "{" else -1
        if not depth:
            return found.end(), found.end() + brace.start()
    raise NotTried(f"the body of {name} never ends")


def head(ptx: str, name: str) -> tuple[int, int]:
    """Where the directives of an entry are, between its parameters and its body."""
    found = re.search(rf"\.entry\s+{re.escape(name)}\s*\([^)]*\)([^{{]*)\{{", ptx)
    if not found:
        raise NotTried(f"there is no entry {name} in the PTX")
    return found.start(1), found.end(1)


def _kinds(text: str) -> dict[str, str]:
    made = {}
    for kind, names in DECLARED.findall(text):
        for one in split(names):
            made[re.sub(r"<\d+>$", "", one.strip()).rstrip("0123456789")] = kind
    return made
