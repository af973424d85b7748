"""PTX as data: functions, their instructions with source lines, variables with their bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Bytes = bytes
"""(`bytes` alone is a field's name below.)"""


@dataclass(frozen=True)
class Place:
    """A line of source."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Instruction:
    """One instruction. `form` is the opcode with its modifiers; `{a, b}` is one operand."""

    form: str
    operands: tuple[str, ...]
    guard: str = ""
    negated: bool = False
    places: tuple[Place, ...] = ()
    """Where it comes from: the innermost place first, then where that was inlined."""
    text: str = ""
    row: int = 0
    """Its line in the PTX."""

    @property
    def opcode(self) -> str:
        return self.form.split(".", 1)[0]


@dataclass(frozen=True)
class Label:
    """A place that a branch may name."""

    name: str


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function: PTX type, bytes, and where it begins among all."""

    name: str
    type: str
    bytes: int
    offset: int
    pointer: bool = False
    """Declared `.ptr`, or 8 bytes wide and so possibly one."""


@dataclass(frozen=True)
class Variable:
    """A variable in global, const, shared or local memory. `values` None: no initial value."""

    name: str
    space: str
    align: int
    bytes: int
    values: Bytes | None = None
    addresses: tuple[tuple[int, str, int], ...] = ()
    """(offset, symbol, addend): addresses among the initial values."""
    external: bool = False


@dataclass
class Function:
    """A kernel (`.entry`) or a device function (`.func`)."""

    name: str
    entry: bool
    parameters: tuple[Parameter, ...]
    returns: tuple[Parameter, ...] = ()
    registers: dict[str, str] = field(default_factory=dict)
    """PTX type of each register that is named."""
    variables: dict[str, Variable] = field(default_factory=dict)
    """Its own: shared, local, and `.param` arrays for calls."""
    body: list[Instruction | Label] = field(default_factory=list)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Labels of each `.branchtargets`."""
    threads: tuple[int, ...] = ()
    """`.maxntid` or `.reqntid`."""


@dataclass
class Program:
    """A PTX module."""

    target: str = ""
    functions: dict[str, Function] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)
    """Functions that are only declared, such as vprintf."""
    variables: dict[str, Variable] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def kernels(self) -> list[str]:
        return [name for name, function in self.functions.items() if function.entry]

    def windows(self) -> list[Variable]:
        """Variables in global and constant memory. Each has the window of its place here."""
        return [v for v in self.variables.values() if v.space in ("global", "const")]


NAME = re.compile(r"(?<![\w$%.])[%$A-Za-z_][\w$]*")
SYMBOL = re.compile(NAME.pattern + r"(?:@\d+)*")
"""A name, with what inlining adds to it."""


def split(text: str) -> list[str]:
    """Parts between the commas that are in no bracket."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        if character in "[{(":
            depth += 1
        elif character in "]})":
            depth -= 1
        elif character == "," and not depth:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def constant(text: str, size: int = 8) -> int | None:
    """The bits of a literal; None where it is none. Negative numbers stay negative.

    size: bytes of what it is for. A number with a fraction becomes an f32 or an f64 by it (PTX
    ISA, floating-point constants); there is none of 1 or 2 bytes.
    """
    text = text.strip()
    if INTEGER.fullmatch(text):
        bare = text.rstrip("U")
        octal = re.fullmatch(r"(-?)0([0-7]+)", bare)
        return int(octal.group(1) + octal.group(2), 8) if octal else int(bare, 0)
    value = _fraction(text)
    if value is not None and size >= 4:
        kind = np.float32 if size == 4 else np.float64
        with np.errstate(over="ignore"):
            return int.from_bytes(kind(value).tobytes(), "little")
    return 32 if text == "WARP_SZ" else None


INTEGER = re.compile(r"-?(?:\d+|0[xX][0-9a-fA-F]+|0[bB][01]+)U?")
DECIMAL = re.compile(r"-?(?:\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)")


def _fraction(text: str) -> np.floating[Any] | None:
    """Bits of an f32 (`0f3F800000`) or an f64 (`0d...`), or a decimal."""
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", text):
        return np.frombuffer(int(text[2:], 16).to_bytes(4, "little"), np.float32)[0]
    if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", text):
        return np.frombuffer(int(text[2:], 16).to_bytes(8, "little"), np.float64)[0]
    return np.float64(text) if DECIMAL.fullmatch(text) else None
