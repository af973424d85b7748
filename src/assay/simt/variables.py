"""Where the variables of a kernel lie, each in its own space."""

from __future__ import annotations

from .code import FIRST_WINDOW, WINDOW_SHIFT
from .ptx import SYMBOL, Function, Instruction, Program


class Variables:
    """Addresses of a kernel's variables and parameters, of those that its instructions name.

    local, shared: offsets in the memory of a thread and of a block. fixed: parameters by name.
    windows: module variables in global or constant memory that it names.
    """

    def __init__(self, program: Program, function: Function):
        self.program = program
        self.fixed = {p.name: p for p in function.parameters}
        self.numbers = {v.name: number for number, v in enumerate(program.windows())}
        self.windows: set[str] = set()
        self.local: dict[str, int] = {}
        self.shared: dict[str, int] = {}
        self.static_shared = self.local_bytes = 0
        self._place(function)

    def _place(self, function: Function) -> None:
        module = self.program.variables.values()
        dynamic = [v for v in module if v.space == "shared" and v.external]
        named = {**{v.name: v for v in module if not v.external}, **function.variables}
        used = _symbols(function)
        local = shared = 0
        for name, variable in named.items():
            if name not in used:
                continue
            align = max(variable.align, 1)
            if variable.space == "shared":
                shared = -(-shared // align) * align
                self.shared[name] = shared
                shared += variable.bytes
            elif variable.space in ("local", "param"):
                align = max(align, 8)
                local = -(-local // align) * align
                self.local[name] = local
                local += variable.bytes
        align = max([16, *(variable.align for variable in dynamic)])
        self.static_shared = -(-shared // align) * align
        self.local_bytes = -(-local // 16) * 16
        for variable in dynamic:
            self.shared[variable.name] = self.static_shared

    def symbol(self, name: str) -> tuple[str, int] | None:
        """(space, address in its own space) of a variable or parameter; None if it is none."""
        if name in self.fixed:
            return "param", self.fixed[name].offset
        if name in self.local:
            return "local", self.local[name]
        if name in self.shared:
            return "shared", self.shared[name]
        if name in self.numbers:
            self.windows.add(name)
            return "global", (FIRST_WINDOW + self.numbers[name]) << WINDOW_SHIFT
        return None


def _symbols(function: Function) -> set[str]:
    return {
        name
        for item in function.body
        if isinstance(item, Instruction)
        for operand in item.operands
        for name in SYMBOL.findall(operand)
    }
