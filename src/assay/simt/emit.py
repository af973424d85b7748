"""From a kernel's control flow to C++: runs of lane-wise instructions as one loop over the lanes.

A register lives where it must: as a variable inside one loop, as an array of 32 lanes inside one
block of code, or, if it outlives its block, in the warp's memory, where only active lanes write it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .code import ENDS as ENDING
from .code import Code, Site
from .faults import NotCheckable
from .flow import Flow, flow_of, suspends
from .forms import Action, Lane, Match, Values, table
from .forms.move import PARAMETER
from .forms.table import SIZES
from .ptx import Function, Instruction, Program, constant, split
from .special import SPECIAL, WIDE
from .storage import places_of
from .variables import Variables

UNSIGNED = {2: "u16", 4: "u32", 8: "u64"}


def emit(program: Program, function: Function) -> Code:
    """The kernel as C++. Raises NotCheckable for the first instruction that is not known."""
    return Emitter(program, function).code()


def check(function: Function) -> None:
    """Raises NotCheckable, naming every form that is not known."""
    unknown: dict[str, Instruction] = {}
    for item in function.body:
        if isinstance(item, Instruction) and table().find(item.form) is None:
            unknown.setdefault(item.form, item)
    if unknown:
        raise NotCheckable(", ".join(unknown), next(iter(unknown.values())).places)


class Emitter:
    """One kernel's translation; forms ask it for operands and targets."""

    def __init__(self, program: Program, function: Function):
        check(function)
        self.program, self.function = program, function
        self.flow: Flow = flow_of(function)
        self.sites: list[Site] = []
        self.before: list[str] = []
        """Statements that the one being emitted needs before it."""
        self.current: dict[str, str] = {}
        """Register -> variable, inside a loop over the lanes."""
        self.counter = 0
        self.block = 0
        self.names: dict[str, str] = {}
        self.granules = {"global": 4, "shared": 4}
        self.compared = {
            item.operands[1]
            for item in function.body
            if isinstance(item, Instruction)
            and item.form.startswith("atom")
            and ".cas" in item.form
        }
        """Addresses of compare-and-swap operations, as written."""
        self.variables = Variables(program, function)
        self.fixed, self.local = self.variables.fixed, self.variables.local
        self.segments = [self._segments(block.instructions) for block in self.flow.blocks]
        places = places_of(self.segments, function.registers, self.size, self._is_run)
        self.storage, self.slots = places.of, places.slots

    # ---- where registers live

    def match(self, item: Instruction) -> Match:
        found = table().find(item.form)
        assert found is not None  # check() has been through all
        if item.form.startswith("ld.param") and self.is_fixed(item.operands[1]):
            return replace(found, row=PARAMETER)
        return found

    def is_fixed(self, address: str) -> bool:
        """Whether it is a place among the kernel's parameters, known now."""
        return self.base_and_offset(address)[0] in self.fixed

    def _segments(self, items: list[Instruction]) -> list[list[Instruction]]:
        """Runs of lane-wise instructions, and the others each alone."""
        made: list[list[Instruction]] = []
        lanewise = False
        for item in items:
            wise = not isinstance(self.match(item).row, Action)
            if wise and lanewise:
                made[-1].append(item)
            else:
                made.append([item])
            lanewise = wise
        return made

    def _is_run(self, at: tuple[int, int]) -> bool:
        return not isinstance(self.match(self.segments[at[0]][at[1]][0]).row, Action)

    def size(self, register: str) -> int:
        """Bytes of a register."""
        return max(2, SIZES[self.function.registers[register]])

    def kind(self, register: str) -> str:
        """Its C++ type: registers hold raw bits."""
        return UNSIGNED[self.size(register)]

    def array(self, register: str) -> str:
        """The 32 lanes of a register that has a place in memory."""
        place, slot = self.storage[register]
        if place == "warp":
            return f"R.{self.identifier(register)}"
        return f"t{self.size(register)}[{slot}]"

    def identifier(self, register: str) -> str:
        return self.names.setdefault(register, f"r{len(self.names)}")

    # ---- operands, for the forms

    def value(self, operand: str, kind: str) -> str:
        """C++ expression, in lane `l`, of an operand as a value of a PTX type."""
        raw, size = self._raw(operand, kind)
        if kind == "f32":
            return f"bit_cast<f32>((u32)({raw}))"
        if kind == "f64":
            return f"bit_cast<f64>((u64)({raw}))"
        if kind == "pred":
            return raw
        letter = "s" if kind[0] == "s" else "u"
        wanted = SIZES[kind]
        if letter == "u" and size == wanted:
            return raw
        return f"({letter}{wanted * 8})({raw})"

    def _raw(self, operand: str, kind: str) -> tuple[str, int]:
        """(expression of its bits, bytes of that)."""
        operand = operand.strip()
        if kind == "pred" and operand.startswith("!"):
            inner, size = self._raw(operand[1:], kind)
            return f"({inner} ^ 1u)", size
        if operand in self.function.registers:
            size = self.size(operand)
            if operand in self.current:
                return self.current[operand], size
            return f"{self.array(operand)}[l]", size
        if operand in SPECIAL:
            return SPECIAL[operand], 8 if operand in WIDE else 4
        wanted = SIZES[kind]
        number = constant(operand, wanted)
        if number is not None:
            bits = number & ((1 << (8 * wanted)) - 1)
            return f"{bits:#x}{'ull' if wanted == 8 else 'u'}", max(wanted, 4)
        symbol = re.fullmatch(r"([\w$%@.]+)\s*(?:\+\s*(-?\d+))?", operand)
        found = self.variables.symbol(symbol.group(1)) if symbol else None
        if symbol and found:
            address = found[1] + int(symbol.group(2) or 0)
            return f"{address:#x}ull" if wanted == 8 else f"{address:#x}u", wanted
        raise NotCheckable(f"operand {operand}")

    def address(self, operand: str, kind: str) -> str:
        """An array with the lanes' addresses, `u32` or `u64`, of `[base + offset]`."""
        base, offset = self.base_and_offset(operand)
        name = self.fresh("a")
        text = self.value(base, kind)
        if offset:
            text += f" + ({kind}){offset}"
        self.before.append(f"alignas(64) {kind} {name}[32]; for (u32 l = 0; l < 32; l++) "
                           f"{name}[l] = ({kind})({text});")  # fmt: skip
        return name

    @staticmethod
    def base_and_offset(operand: str) -> tuple[str, int]:
        inner = operand.strip()[1:-1].strip()
        found = re.fullmatch(r"([\w$%@.]+)\s*(?:([+-])\s*(-?\w+))?", inner)
        offset = constant(found.group(3) or "0") if found else None
        if found is None or offset is None:
            raise NotCheckable(f"address {operand}")
        return found.group(1), -offset if found.group(2) == "-" else offset

    def lanes(self, operand: str, kind: str) -> str:
        """`const T*` to the 32 lanes of an operand, T the unsigned type of its size."""
        if operand in self.function.registers and self.size(operand) == SIZES[kind]:
            return self.array(operand)
        name = self.fresh("i")
        made = f"u{SIZES[kind] * 8}"
        self.before.append(
            f"alignas(64) {made} {name}[32]; for (u32 l = 0; l < 32; l++) {name}[l] = "
            f"({made})({self.value(operand, 'b' + made[1:])});"
        )
        return name

    def target(self, register: str) -> str:
        """`T*` to the lanes of a destination. Only those of `mask` may be written."""
        if register == "_":
            name = self.fresh("sink")
            self.before.append(f"alignas(64) u64 {name}[32];")
            return f"(u32*){name}"
        return self.array(register)

    def vector(self, operand: str) -> list[str]:
        operand = operand.strip()
        return split(operand[1:-1]) if operand.startswith("{") else [operand]

    def mask(self, item: Instruction) -> str:
        """The lanes that execute an instruction, as a 32-bit mask."""
        if not item.guard:
            return "W.mask"
        return f"(W.mask & {'~' if item.negated else ''}bits({self.array(item.guard)}))"

    def uniform(self, operand: str, kind: str = "u32") -> str:
        """An operand that is the same in all lanes: that of the first active one."""
        text = self.value(operand, kind)
        return re.sub(r"\bl\b", "__builtin_ctz(W.mask)", text)

    def site(self, item: Instruction, space: str = "") -> int:
        self.sites.append(Site(item.places, item.text, space))
        return len(self.sites) - 1

    def fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}_"

    def touches(self, space: str, size: int) -> None:
        """Notes the size of an access, which decides how finely a space is watched."""
        for name in ("global", "shared") if space == "generic" else (space,):
            if name in self.granules:
                self.granules[name] = min(self.granules[name], max(1, size))

    # ---- statements

    def _results(self, item: Instruction) -> list[tuple[str, str, str]]:
        try:
            return self._values(item)
        except NotCheckable as error:
            raise NotCheckable(error.what, error.places or item.places) from error

    def _values(self, item: Instruction) -> list[tuple[str, str, str]]:
        match = self.match(item)
        if isinstance(match.row, Values):
            return match.row.make(match, item, self)
        assert isinstance(match.row, Lane)
        return self._lane(match, match.row, item)

    def _lane(self, match: Match, row: Lane, item: Instruction) -> list[tuple[str, str, str]]:
        kinds = _fill(row.operands, match.groups).split()
        operands = [o for o in item.operands[1:]]
        if len(kinds) != len(operands):
            raise NotCheckable(f"{item.form} with {len(operands)} operands", item.places)
        values = [
            o if k == "imm" else self.value(o, k) for o, k in zip(operands, kinds, strict=True)
        ]
        result = _fill(row.result, match.groups)
        destinations = [d.strip() for d in item.operands[0].split("|")]
        made = [(destinations[0], result, _code(row.code, values, match.groups))]
        if len(destinations) > 1:
            if not row.second:
                raise NotCheckable(f"{item.form} with two destinations", item.places)
            made.append((destinations[1], "pred", _code(row.second, values, match.groups)))
        return made

    def _run(self, items: list[Instruction]) -> list[str]:
        """A run of lane-wise instructions as one loop."""
        lines: list[str] = []
        written: dict[str, None] = {}
        self.current = {}
        for item in items:
            pending = []
            for register, kind, text in self._results(item):
                if register == "_":
                    continue
                size = self.size(register)
                made = f"(u{size * 8})({_encode(text, kind)})"
                if item.guard:
                    guard = self.value(item.guard, "pred")
                    old, _ = self._raw(register, self.function.registers[register])
                    order = (old, made) if item.negated else (made, old)
                    made = f"{guard} ? {order[0]} : {order[1]}"
                name = self.fresh("v")
                lines.append(f"const u{size * 8} {name} = {made};")
                pending.append((register, name))
            for register, name in pending:
                self.current[register] = name
                written[register] = None
        for register in written:
            place, _ = self.storage[register]
            if place == "variable":
                continue
            array, name = self.array(register), self.current[register]
            bits = self.size(register) * 8
            if place == "array":
                lines.append(f"{array}[l] = {name};")
            else:
                mask = f"W.m{bits}[l]"
                lines.append(f"{array}[l] = (u{bits})(({name} & {mask}) | ({array}[l] & ~{mask}));")
        self.current = {}
        body = "\n    ".join(lines)
        return ["#pragma GCC ivdep", f"for (u32 l = 0; l < 32; l++) {{\n    {body}\n}}"]

    def _action(self, item: Instruction) -> list[str]:
        match = self.match(item)
        assert isinstance(match.row, Action)
        self.before = []
        text = match.row.emit(match, item, self)
        return ["{", *self.before, text, "}"]

    def _block(self, index: int) -> list[str]:
        self.block = index
        block = self.flow.blocks[index]
        lines = [
            f"B{index}: ;",
            f"if (W.splits && !W.passed) {{ pc = arrive(W, {index}); "
            f"if (pc != {index}) goto dispatch; }}",
        ]
        first = block.instructions[0] if block.instructions else None
        if first is None or not suspends(first):
            lines.append(self.counted(index))
        for segment in self.segments[index]:
            try:
                if isinstance(self.match(segment[0]).row, Action):
                    lines += self._action(segment[0])
                else:
                    lines += self._run(segment)
            except NotCheckable as error:
                if not error.places:
                    raise NotCheckable(error.what, segment[0].places) from error
                raise
        return lines

    @staticmethod
    def counted(index: int) -> str:
        return f"K[{index}].warps++; K[{index}].lanes += (u64)__builtin_popcount(W.mask);"

    def jump(self, to: int) -> str:
        """A branch that is taken by all active lanes; backward ones use up the quota."""
        if to == self.flow.exit:
            return "{ pc = leave(W, W.mask); if (pc == OUT) return; goto dispatch; }"
        if to > self.block:
            return f"goto B{to};"
        return f"{{ if (++W.spins >= L.quota) {{ spun(W, {to}); return; }} goto B{to}; }}"

    def code(self) -> Code:
        body: list[str] = []
        for index in range(self.flow.exit):
            body += self._block(index)
        forms = [i.form for i in self.function.body if isinstance(i, Instruction)]
        registers = [
            f"alignas(64) {self.kind(r)} {self.identifier(r)}[32];"
            for r, (place, _) in self.storage.items()
            if place == "warp"
        ]
        size = sum(self.size(r) * 32 for r, (place, _) in self.storage.items() if place == "warp")
        cases = " ".join(f"case {i}: goto B{i};" for i in range(self.flow.exit))
        arrays = [
            f"alignas(64) u{size_ * 8} t{size_}[{count}][32];"
            for size_, count in self.slots.items()
            if count
        ]
        source = "\n".join(
            [
                '#include "kernel.h"',
                "struct Registers {",
                *registers,
                "};",
                'extern "C" void kernel(Warp& W) {',
                "Registers& R = *(Registers*)W.registers; (void)R;",
                "Launch& L = *W.launch; Block& B = *W.block; (void)L; (void)B;",
                "const u8* const P = L.parameters; (void)P;",
                "BlockCount* const K = W.worker->block_count; (void)K;",
                *arrays,
                "u32 pc = W.pc;",
                f"dispatch: switch (pc) {{ {cases} default: return; }}",
                *body,
                "}",
                "",
            ]
        )
        return Code(
            source=source,
            sites=self.sites,
            depths=[block.depth for block in self.flow.blocks] + [0],
            above=[b.above + (ENDING if b.only_ends else 0) for b in self.flow.blocks],
            mixes=[[(i.places, i.form) for i in b.instructions] for b in self.flow.blocks],
            begins=[b.instructions[0].places if b.instructions else () for b in self.flow.blocks],
            ends=[b.instructions[-1].places if b.instructions else () for b in self.flow.blocks],
            register_bytes=max(64, -(-size // 64) * 64),
            local_bytes=self.variables.local_bytes,
            static_shared=self.variables.static_shared,
            windows=[v for v in self.program.windows() if v.name in self.variables.windows],
            granule=self.granules["global"],
            shared_granule=self.granules["shared"],
            communicates=any(COMMUNICATES.search(form) for form in forms),
            tensor=any(form.startswith(("mma.", "wmma.")) for form in forms),
            prints=any(form.startswith("call ") for form in forms),
            ordered=any(re.match(r"atom|red\.|call vprintf", form) for form in forms),
            parameters=[(p.name, p.type, p.bytes, p.offset) for p in self.function.parameters],
            threads=self.function.threads,
        )


COMMUNICATES = re.compile(
    r"^(?:membar\.(?:gl|sys)|fence\.(?!.*proxy).*\.(?:gpu|sys|cluster)\b)"
    r"|^(?:ld|st)\..*\b(?:volatile|acquire|release|relaxed)\b"
    r"|^(?:atom|red)\..*\b(?:acquire|release|acq_rel)\b|^mbarrier"
)


def _fill(text: str, groups: dict[str, str]) -> str:
    return GROUP.sub(lambda m: groups[m.group(1)], text)


def _code(text: str, values: list[str], groups: dict[str, str]) -> str:
    return PLACEHOLDER.sub(
        lambda m: f"({values[int(m.group(1))]})" if m.group(1).isdigit() else groups[m.group(1)],
        text,
    )


GROUP = re.compile(r"\{([A-Za-z]\w*)\}")
PLACEHOLDER = re.compile(r"\{(\w+)\}")


def _encode(text: str, kind: str) -> str:
    """The bits of a value of a PTX type."""
    if kind == "f32":
        return f"bit_cast<u32>((f32)({text}))"
    if kind == "f64":
        return f"bit_cast<u64>((f64)({text}))"
    if kind == "pred":
        return f"({text}) ? 1u : 0u"
    letter = "s" if kind[0] == "s" else "u"
    return f"({letter}{SIZES[kind] * 8})({text})"
