"""A kernel as one function: calls become the bodies they call, the carry flag a register."""

from __future__ import annotations

import re
from dataclasses import replace

from .faults import NotCheckable
from .flow import ENDS, suspends
from .ptx import SYMBOL, Function, Instruction, Label, Program, split

HANDLED = frozenset({"vprintf", "__assertfail"})
"""Functions of the CUDA runtime that the emitter has itself."""
MOST_INSTRUCTIONS = 200_000


def flatten(program: Program, entry: str) -> Function:
    """The kernel with every call of a known function inlined. Raises NotCheckable."""
    function = program.functions[entry]
    made = replace(
        function,
        registers=dict(function.registers),
        variables=dict(function.variables),
        tables=dict(function.tables),
        body=[],
    )
    _Inliner(program, made).copy(function, "", {}, (entry,))
    made.body = [item if isinstance(item, Label) else _with_carry(item) for item in made.body]
    made.body = _ended(_around_guarded(made.body))
    made.registers[CARRY] = "pred"
    return made


CARRY = "%cc"
"""The carry flag, which `.cc` writes and `addc`, `subc` and `madc` read."""


def _with_carry(item: Instruction) -> Instruction:
    """The same instruction with the flag among its operands, as the form table has it."""
    operands = item.operands
    if ".cc" in item.form:
        operands = (f"{operands[0]}|{CARRY}", *operands[1:])
    if item.opcode in ("addc", "subc", "madc"):
        operands = (*operands, CARRY)
    return replace(item, operands=operands)


def _around_guarded(body: list[Instruction | Label]) -> list[Instruction | Label]:
    """A guarded instruction at which lanes wait is skipped by a branch: others don't come to it."""
    made: list[Instruction | Label] = []
    for number, item in enumerate(body):
        if isinstance(item, Label) or not item.guard or not suspends(item):
            made.append(item)
            continue
        skip = Label(f"$past{number}")
        made.append(replace(item, form="bra", operands=(skip.name,), negated=not item.negated))
        made += [replace(item, guard="", negated=False), skip]
    return made


def _ended(body: list[Instruction | Label]) -> list[Instruction | Label]:
    """With the return that PTX lets a kernel leave out at its end."""
    last = body[-1] if body else None
    if isinstance(last, Instruction) and last.opcode in ENDS and not last.guard:
        return body
    places = next((item.places for item in reversed(body) if isinstance(item, Instruction)), ())
    return [*body, Instruction("ret", (), places=places, text="ret")]


class _Inliner:
    def __init__(self, program: Program, made: Function):
        self.program, self.made, self.calls = program, made, 0

    def copy(
        self, source: Function, suffix: str, names: dict[str, str], stack: tuple[str, ...]
    ) -> None:
        """Appends a body; `names` are those that mean something of the caller's."""
        body = self.made.body
        end = f"$return{suffix}"
        labels = {label.name for label in source.body if isinstance(label, Label)}
        for item in source.body:
            if isinstance(item, Label):
                body.append(Label(item.name + suffix))
                continue
            if suffix:
                item = self._rename(item, source, suffix, names, labels)
            if item.opcode == "call":
                self._call(item, stack)
            elif item.opcode == "ret" and suffix:
                body.append(replace(item, form="bra", operands=(end,)))
            else:
                body.append(item)
            if len(body) > MOST_INSTRUCTIONS:
                raise NotCheckable("a kernel of more than 200,000 instructions", item.places)
        if suffix:
            body.append(Label(end))

    def _rename(
        self,
        item: Instruction,
        source: Function,
        suffix: str,
        names: dict[str, str],
        labels: set[str],
    ) -> Instruction:

        def rename(found: re.Match[str]) -> str:
            name = found.group(0)
            if name in names:
                return names[name]
            if name in source.registers:
                self.made.registers[name + suffix] = source.registers[name]
                return name + suffix
            if name in source.variables and source.variables[name].space == "shared":
                self.made.variables[name] = source.variables[name]  # one of the block, not a call's
                return name
            if name in source.variables:
                self.made.variables[name + suffix] = source.variables[name]
                return name + suffix
            if name in source.tables:
                self.made.tables[name + suffix] = tuple(t + suffix for t in source.tables[name])
                return name + suffix
            return name + suffix if name in labels else name

        operands = tuple(SYMBOL.sub(rename, operand) for operand in item.operands)
        guard = SYMBOL.sub(rename, item.guard) if item.guard else ""
        return replace(item, operands=operands, guard=guard)

    def _call(self, item: Instruction, stack: tuple[str, ...]) -> None:
        operands = list(item.operands)
        returned = split(operands.pop(0).strip("()")) if operands[0].startswith("(") else []
        target = operands.pop(0)
        target = self.program.aliases.get(target, target)
        passed = split(operands[0].strip("()")) if operands else []
        callee = self.program.functions.get(target)
        if callee is None:
            if target in HANDLED:
                self.made.body.append(
                    replace(item, form=f"call {target}", operands=(*returned, *passed))
                )
                return
            what = "call through a pointer" if target in self.made.registers else f"call {target}"
            raise NotCheckable(what, item.places)
        if target in stack:
            raise NotCheckable(f"recursive call of {target}", item.places)
        self.calls += 1
        suffix = f"@{self.calls}"
        self._check_call(item, callee, passed, returned)
        names = dict(zip((p.name for p in callee.parameters), passed))
        names |= zip((p.name for p in callee.returns), returned)
        if item.guard:
            skip = f"$skip{suffix}"
            self.made.body.append(
                replace(item, form="bra", operands=(skip,), negated=not item.negated)
            )
        self.copy(callee, suffix, names, (*stack, target))
        if item.guard:
            self.made.body.append(Label(f"$skip{suffix}"))

    def _check_call(
        self, item: Instruction, callee: Function, passed: list[str], returned: list[str]
    ) -> None:
        """Arguments are names of `.param` variables, or of registers for `.reg` parameters."""
        if len(passed) != len(callee.parameters) or len(returned) != len(callee.returns):
            raise NotCheckable(f"call {callee.name} with other arguments than it has", item.places)
        for name in (*passed, *returned):
            if name not in self.made.variables and name not in self.made.registers:
                raise NotCheckable(f"call {callee.name} with the argument {name}", item.places)
