"""From PTX text to data: the syntax of the PTX ISA 8.8, as far as the compilers write it.

Nothing is judged here: whether an instruction is known is the form table's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ..errors import NotRun
from .faults import NotCheckable
from .forms.table import SIZES
from .ptx import (
    NAME,
    Function,
    Instruction,
    Label,
    Parameter,
    Place,
    Program,
    Variable,
    constant,
    split,
)


class PTXError(NotRun):
    """Text that is no PTX as it is understood here, with its line."""


COMMENT = re.compile(r'"[^"\n]*"|/\*.*?\*/|//[^\n]*', re.DOTALL)
"""A comment, or a string, which may hold what looks like one."""
FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
TARGET = re.compile(r"^\s*\.target\s+(\w+)", re.MULTILINE)
FUNCTION = re.compile(
    r"\.(?P<kind>entry|func)\s*(?:\.noreturn\s*)?(?:\((?P<returns>[^)]*)\)\s*)?(?P<name>[\w$]+)\s*"
    r"(?:\((?P<parameters>[^)]*)\))?(?P<directives>[^;{]*)$"
)
VARIABLE = re.compile(
    r"^(?P<linkage>(?:\.(?:visible|weak|common|extern)\s+)*)\.(?P<space>global|const|shared|local|param)"
    r"\s+(?:\.attribute\([^)]*\)\s*)?(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>\w+)\s+"
    r"(?P<name>[\w$%]+)\s*(?P<sizes>(?:\[\s*\d*\s*\])*)\s*(?:=\s*(?P<values>.*))?$",
    re.DOTALL,
)
PARAMETER = re.compile(
    r"^\.(?:param|reg)\s+(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>\w+)(?P<ptr>.*?)\s"
    r"(?P<name>[\w$%]+)\s*(?:\[(?P<size>\d*)\])?$",
    re.DOTALL,
)
LOC = re.compile(
    r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)"
    r"(?:\s*,\s*function_name\s+[\w$]+(?:\s*\+\s*\d+)?\s*,\s*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?"
)
INSTRUCTION = re.compile(r"(?:@(!?)\s*([\w$%]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
RANGE = re.compile(r"^(.*?)<(\d+)>$")
ADDRESS = re.compile(r"^(?:generic\(([\w$]+)\)|([\w$]+))(?:\s*\+\s*(\d+))?$")
STATEMENT = re.compile(r"\s*(?:(?P<brace>[{}])|(?P<label>[%$\w]+)\s*:(?!:)|(?P<loc>\.loc\s[^\n]*))")


def parse(text: str) -> Program:
    """The program of a PTX text. Raises PTXError."""
    text = COMMENT.sub(_without_comment, text)
    target = TARGET.search(text)
    program = Program(target=target.group(1) if target else "")
    files = {int(number): path for number, path in FILE.findall(text)}
    for head, body, offset in _items(text):
        function = FUNCTION.search(head)
        if function:
            _function(program, function, body, files, text, offset)
            continue
        alias = re.match(r"\.alias\s+([\w$]+)\s*,\s*([\w$]+)$", head)
        if alias:
            program.aliases[alias.group(1)] = alias.group(2)
        elif re.match(r"(?:\.(?:visible|weak|common|extern)\s+)*\.(?:global|const|shared)\b", head):
            variable = _variable(head)
            program.variables[variable.name] = variable
    return program


def _without_comment(found: re.Match[str]) -> str:
    text = found.group(0)
    return text if text.startswith('"') else re.sub(r"[^\n]", " ", text)


def _size(kind: str, name: str) -> int:
    """Bytes of a type. Textures, samplers and surfaces have none here."""
    if kind not in SIZES:
        raise NotCheckable(f"{name} of type .{kind}")
    return SIZES[kind]


DIRECTIVE = re.compile(r"\s*\.(?:version|target|address_size|file)\b[^\n]*\n")
BRACE = re.compile(r"[{}]")
STOP = re.compile(r"[;{]")


def _items(text: str) -> Iterator[tuple[str, str | None, int]]:
    """(head, body or None, offset of the body) of each top-level item."""
    at = 0
    while True:
        directive = DIRECTIVE.match(text, at)
        if directive:
            at = directive.end()
            continue
        stop = STOP.search(text, at)
        if not stop:
            return
        head = text[at : stop.start()].strip()
        if stop.group(0) == ";":
            at = stop.end()
            yield head, None, 0
            continue
        end = _closing(text, stop.start())
        if head.endswith("="):  # a list of initial values
            semicolon = text.index(";", end)
            at = semicolon + 1
            yield head + text[stop.start() : semicolon], None, 0
            continue
        at = end
        if not head.startswith(".section"):
            yield head, text[stop.end() : end - 1], stop.end()


def _closing(text: str, start: int) -> int:
    depth = 0
    for brace in BRACE.finditer(text, start):
        depth += 1 if brace.group(0) == "{" else -1
        if not depth:
            return brace.end()
    raise PTXError(f"line {text.count(chr(10), 0, start) + 1}: a brace that is never closed")


def _function(
    program: Program,
    found: re.Match[str],
    body: str | None,
    files: dict[int, str],
    text: str,
    offset: int,
) -> None:
    name = found.group("name")
    if body is None:
        program.declared.add(name)
        return
    threads = re.search(r"\.(?:max|req)ntid\s+(\d+(?:\s*,\s*\d+)*)", found.group("directives"))
    function = Function(
        name=name,
        entry=found.group("kind") == "entry",
        parameters=_parameters(found.group("parameters")),
        returns=_parameters(found.group("returns")),
        threads=tuple(int(n) for n in threads.group(1).split(",")) if threads else (),
    )
    _Body(function, files, body, text.count("\n", 0, offset) + 1).read()
    program.functions[name] = function
    program.declared.discard(name)


def _parameters(text: str | None) -> tuple[Parameter, ...]:
    made, offset = [], 0
    for part in split(text or ""):
        found = PARAMETER.match(part)
        if not found:
            raise PTXError(f"a parameter that is not understood: {part}")
        kind = found.group("type")
        element = _size(kind, found.group("name"))
        size = element * int(found.group("size") or 1)
        align = int(found.group("align") or element)
        offset = -(-offset // align) * align
        pointer = ".ptr" in found.group("ptr") or (kind in ("u64", "b64") and size == 8)
        made.append(Parameter(found.group("name"), kind, size, offset, pointer))
        offset += size
    return tuple(made)


def _variable(text: str) -> Variable:
    found = VARIABLE.match(" ".join(text.split()))
    if not found:
        raise PTXError(f"a variable that is not understood: {text[:80]}")
    element = _size(found.group("type"), found.group("name"))
    count = 1
    for size in re.findall(r"\[\s*(\d*)\s*\]", found.group("sizes") or ""):
        count *= int(size or 0)
    values, addresses = None, []
    total = element * count
    if found.group("values"):
        listed = split(re.sub(r"[{}]", " ", found.group("values")))
        total = max(total, element * len(listed))
        raw = bytearray(total)
        for index, value in enumerate(listed):
            at = index * element
            number = constant(value, element)
            if number is None:
                address = ADDRESS.match(value)
                if not address or element != 8:
                    raise PTXError(f"an initial value that is not understood: {value}")
                symbol = address.group(1) or address.group(2)
                addresses.append((at, symbol, int(address.group(3) or 0)))
                continue
            raw[at : at + element] = (number % (1 << (8 * element))).to_bytes(element, "little")
        values = bytes(raw)
    return Variable(
        name=found.group("name"),
        space=found.group("space"),
        align=int(found.group("align") or element),
        bytes=total,
        values=values,
        addresses=tuple(addresses),
        external="extern" in found.group("linkage"),
    )


class _Body:
    """Reads one function body: scopes rename their registers, `.loc` gives the place."""

    def __init__(self, function: Function, files: dict[int, str], text: str, row: int):
        self.function, self.files, self.text, self.row = function, files, text, row
        self.scopes: list[dict[str, str]] = [{}]
        self.ranges: list[dict[str, tuple[str, int, str]]] = [{}]
        """Of each scope: prefix -> (type, count, suffix that makes its names unique)."""
        self.opened = 0
        self.starts: list[tuple[int, int]] = []
        """Of each scope that is open: its number, and where it begins in the body."""
        self.labels: list[set[str]] = [set()]
        self.places: tuple[Place, ...] = ()
        self.inlined: dict[tuple[str, str, str], tuple[Place, ...]] = {}
        self.resolved: dict[str, str] = {}

    def read(self) -> None:
        at, text = 0, self.text
        counted, row = 0, self.row
        while True:
            found = STATEMENT.match(text, at)
            if found:
                at = found.end()
                self._special(found)
                continue
            end = text.find(";", at)
            if end < 0:
                if text[at:].strip():
                    raise PTXError(f"{self.function.name}: an unfinished statement")
                return
            start = at + len(text[at:end]) - len(text[at:end].lstrip())
            row += text.count("\n", counted, start)
            counted = start
            statement = text[start:end].strip()
            at = end + 1
            if statement.startswith("."):
                self._directive(statement)
            elif statement:
                self._instruction(" ".join(statement.split()), row)

    def _special(self, found: re.Match[str]) -> None:
        if found.group("brace") == "{":
            self.opened += 1
            self.starts.append((self.opened, len(self.function.body)))
            self.labels.append(set())
            self.scopes.append({})
            self.ranges.append({})
            self.resolved.clear()
        elif found.group("brace"):
            self._close()
            self.scopes.pop()
            self.ranges.pop()
            self.resolved.clear()
        elif found.group("label"):
            self.labels[-1].add(found.group("label"))
            self.function.body.append(Label(found.group("label")))
        else:
            self._loc(found.group("loc"))

    def _close(self) -> None:
        """A scope's labels are its own: they get names of their own, now that all are known."""
        number, start = self.starts.pop()
        new = {name: f"{name}$${number}" for name in self.labels.pop()}
        if not new:
            return
        body, tables = self.function.body, self.function.tables
        for index in range(start, len(body)):
            item = body[index]
            if isinstance(item, Label):
                body[index] = Label(new.get(item.name, item.name))
            elif item.opcode in ("bra", "brx"):
                operands = tuple(new.get(operand, operand) for operand in item.operands)
                body[index] = replace(item, operands=operands)
        for name in [name for name in tables if name in new]:
            tables[new[name]] = tuple(new.get(target, target) for target in tables.pop(name))

    def _loc(self, text: str) -> None:
        found = LOC.match(text)
        if not found:
            return
        file, line, column, *outer = found.groups()
        places: tuple[Place, ...] = (Place(self.files.get(int(file), "?"), int(line)),)
        if outer[0]:
            at = (outer[0], outer[1], outer[2])
            own = Place(self.files.get(int(outer[0]), "?"), int(outer[1]))
            places += self.inlined.get(at, (own,))
        self.inlined[file, line, column] = places
        self.places = places

    def _directive(self, text: str) -> None:
        body = self.function.body
        if text.startswith(".reg"):
            self._registers(text)
        elif re.match(r"\.(local|shared|param)\b", text):
            variable = _variable(text)
            name = variable.name
            if len(self.scopes) > 1 or name in self.function.variables:
                name = f"{name}$${self.opened}"  # `.param` arrays of calls are named anew in each
                self.scopes[-1][variable.name] = name
                self.resolved.pop(variable.name, None)
            self.function.variables[name] = variable
        elif text.startswith((".branchtargets", ".callprototype", ".calltargets")):
            if not isinstance(body[-1], Label):
                raise PTXError(f"{self.function.name}: {text.split()[0]} without a label")
            label = body.pop()
            assert isinstance(label, Label)
            if text.startswith(".branchtargets"):
                targets = split(text.removeprefix(".branchtargets"))
                self.function.tables[label.name] = tuple(targets)
        elif not text.startswith((".pragma", ".alias")):
            raise PTXError(f"{self.function.name}: a directive that is not understood: {text[:60]}")

    def _registers(self, text: str) -> None:
        found = re.match(r"\.reg\s*\.(\w+)\s+(.*)", text, re.DOTALL)
        if not found:
            raise PTXError(f"{self.function.name}: registers that are not understood: {text[:60]}")
        suffix = f"$${self.opened}" if len(self.scopes) > 1 else ""
        for name in split(found.group(2)):
            several = RANGE.match(name)
            if several:
                prefix, count = several.group(1), int(several.group(2))
                self.ranges[-1][prefix] = (found.group(1), count, suffix)
            else:
                self.scopes[-1][name] = name + suffix
                self.function.registers[name + suffix] = found.group(1)
        self.resolved.clear()

    def _resolve(self, name: str) -> str:
        if name not in self.resolved:
            self.resolved[name] = self._lookup(name)
        return self.resolved[name]

    def _lookup(self, name: str) -> str:
        for own, ranges in zip(reversed(self.scopes), reversed(self.ranges)):
            if name in own:
                return own[name]
            digits = len(name) - len(name.rstrip("0123456789"))
            known = ranges.get(name[: len(name) - digits]) if digits else None
            if known and int(name[len(name) - digits :]) < known[1]:
                unique = name + known[2]
                self.function.registers[unique] = known[0]
                return unique
        return name

    def _instruction(self, text: str, row: int) -> None:
        found = INSTRUCTION.fullmatch(text)
        if not found:
            raise PTXError(f"PTX line {row}: {text[:60]}")
        negated, guard, form, rest = found.groups()
        renamed = NAME.sub(lambda m: self._resolve(m.group(0)), rest) if rest else ""
        self.function.body.append(
            Instruction(
                form=form,
                operands=tuple(split(renamed)),
                guard=self._resolve(guard) if guard else "",
                negated=bool(negated),
                places=self.places,
                text=text,
                row=row,
            )
        )
