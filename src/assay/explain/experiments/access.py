"""Rules on memory: addresses made neighbours or free of conflicts, accesses and atomics left out.

What is left out still is in the code, behind a condition that never holds and that no compiler
can know: so its operands are computed as before. A load that is left out gives 1.0, or 0 for what
is no float: numbers made of its address, so that two loads are not one.
"""

from __future__ import annotations

import re

from .entry import Instruction, New, NotTried, Rule

WARP = 32
LINE_BYTES = 128
"""Of shared memory in one pass: 32 banks of 4 bytes."""
NEVER = {2: "0x7FA5", 4: "0x7FA5A5A5", 8: "0x7FF5A5A5A5A5A5A5"}
"""Bit patterns that no number of a program is: NaNs that no arithmetic makes."""
ONE = {"f32": 0x3F800000, "f64": 0x3FF0000000000000, "f16": 0x3C00, "bf16": 0x3F80}
ADDRESS = re.compile(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\w+))?\s*\]")


def of_space(one: Instruction, opcodes: tuple[str, ...], space: str) -> bool:
    """Whether it is one of these operations on this space (and on no other thread's)."""
    return one.opcode in opcodes and space in one.parts and "async" not in one.parts


def address(one: Instruction) -> tuple[str, str]:
    """(register or symbol, offset in bytes)."""
    for operand in one.operands:
        found = ADDRESS.fullmatch(operand.strip())
        if found:
            return found[1], found[2] or "0"
    raise NotTried(f"an address that is not understood: {one.text()}")


def moved(one: Instruction, to: str) -> str:
    """The same access at the address in register `to`."""
    operands = tuple(f"[{to}]" if ADDRESS.fullmatch(o.strip()) else o for o in one.operands)
    return Instruction(one.guard, one.form, operands).text()


def coalesced(one: Instruction, new: New) -> list[str] | None:
    """Accesses of a whole warp to global memory at neighbouring addresses.

    Where lanes are `step` bytes apart, evenly, the warp and its neighbours trade places in tiles:
    with w bytes each, k = a0 / w mod min(32, step / w) of the first lane's address a0,
        new = a0 + k (max(step, 32 w) - w) + lane w
    so that all warps together still touch the same bytes, each once, if step / w is a power of two
    (else some are touched twice and some not at all). Without one step, all take the first lane's
    line. Warps that are not whole, and lanes side by side or on one address, keep what they have.
    """
    if not of_space(one, ("ld", "st"), "global") or not one.bytes:
        return None
    base, offset = address(one)
    if not base.startswith("%"):
        return None
    width = one.bytes * one.elements
    bits, lane = width.bit_length() - 1, new.lane()
    mine, meant, first, there, line = (new("b64") for _ in range(5))
    active, low, high, low0, high0, low1 = (new("b32") for _ in range(6))
    step, jump, mask, over, k, by = (new("b32") for _ in range(6))
    whole, even, wide, odd, near = (new("pred") for _ in range(5))
    wlane = new.before(f"lane{width}", "b32", lambda name: [f"shl.b32 {name}, {lane}, {bits};"])
    far = new.before(f"far{width}", "b64", lambda name: [f"cvt.u64.u32 {name}, {wlane};"])
    return [
        f"add.s64 {mine}, {base}, {offset};",
        f"activemask.b32 {active};",
        f"mov.b64 {{{low}, {high}}}, {mine};",
        f"shfl.sync.idx.b32 {low0}, {low}, 0, 31, {active};",
        f"shfl.sync.idx.b32 {high0}, {high}, 0, 31, {active};",
        f"shfl.sync.idx.b32 {low1}, {low}, 1, 31, {active};",
        f"mov.b64 {first}, {{{low0}, {high0}}};",
        f"sub.s32 {step}, {low1}, {low0};",
        f"mad.wide.s32 {meant}, {step}, {lane}, {first};",
        f"setp.eq.s32 {whole}, {active}, -1;",
        f"setp.eq.and.s64 {even}, {meant}, {mine}, {whole};",
        f"vote.sync.all.pred {even}, {even}, {active};",
        f"setp.gt.and.s32 {wide}, {step}, {width}, {even};",
        f"shr.s32 {mask}, {step}, {bits};",
        f"min.s32 {mask}, {mask}, {WARP};",
        f"sub.s32 {over}, {mask}, 1;",
        f"and.b32 {k}, {mask}, {over};",
        f"setp.ne.s32 {near}, {k}, 0;",
        f"selp.b32 {mask}, 0, {over}, {near};",
        f"shr.u32 {k}, {low0}, {bits};",
        f"and.b32 {k}, {k}, {mask};",
        f"max.s32 {jump}, {step}, {WARP * width};",
        f"sub.s32 {jump}, {jump}, {width};",
        f"mul.lo.s32 {by}, {k}, {jump};",
        f"add.s32 {by}, {by}, {wlane};",
        f"cvt.s64.s32 {there}, {by};",
        f"add.s64 {there}, {there}, {first};",
        f"selp.b64 {there}, {there}, {mine}, {wide};",
        # Lanes without one step: all on the line of the first one.
        f"and.b64 {line}, {first}, -{WARP * width};",
        f"add.s64 {line}, {line}, {far};",
        f"not.pred {odd}, {even};",
        f"and.pred {odd}, {odd}, {whole};",
        f"setp.ne.and.s32 {odd}, {step}, {width}, {odd};",
        f"setp.ne.and.s32 {odd}, {step}, 0, {odd};",
        f"selp.b64 {there}, {line}, {there}, {odd};",
        moved(one, there),
    ]


def free_of_conflicts(one: Instruction, new: New) -> list[str] | None:
    """Accesses to shared memory in the same 128 bytes as before, each lane at its own bank."""
    if not of_space(one, ("ld", "st"), "shared") or not one.bytes:
        return None
    base, offset = address(one)
    if not base.startswith("%"):
        return None  # one address for all lanes: no conflict
    width, lane = one.bytes * one.elements, new.lane()
    bits = width.bit_length() - 1
    bank = new.before(
        f"bank{width}",
        "b32",
        lambda name: [
            f"shl.b32 {name}, {lane}, {bits};",
            f"and.b32 {name}, {name}, {LINE_BYTES - 1};",
        ],
    )
    kind = "b64" if new.size(base) == 8 else "b32"
    there, own = new(kind), bank
    if kind == "b64":
        own = new.before(f"wide{width}", "b64", lambda name: [f"cvt.u64.u32 {name}, {bank};"])
    return [
        f"add.s{kind[1:]} {there}, {base}, {offset};",
        f"and.{kind} {there}, {there}, -{LINE_BYTES};",
        f"or.{kind} {there}, {there}, {own};",
        moved(one, there),
    ]


def without_atomics(one: Instruction, new: New) -> list[str] | None:
    """Atomics left out. Who asks for the old value gets the new one, or what a swap expected."""
    if one.opcode not in ("atom", "red"):
        return None
    operands = one.operands[1:] if one.opcode == "atom" else one.operands
    given = _elements(operands[1])[0]
    lines, never = _never(one, given, new)
    lines.append(_guarded(one, never))
    if one.opcode == "atom" and one.operands[0] != "_":
        moves = zip(_elements(one.operands[0]), _elements(operands[1]))
        size = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}
        kind = size.get(one.bytes)
        if kind is None:
            raise NotTried(f"an atomic of that width: {one.form}")
        # Before it, as it does not run.
        lines[-1:] = [*(f"mov.{kind} {to}, {by};" for to, by in moves), lines[-1]]
    return lines


def without_stores(space: str) -> Rule:
    """Stores to a space left out."""

    def rule(one: Instruction, new: New) -> list[str] | None:
        if not of_space(one, ("st",), space):
            return None
        lines, never = _never(one, _elements(one.operands[1])[0], new)
        return [*lines, _guarded(one, never)]

    return rule


def without_loads(space: str) -> Rule:
    """Loads from a space left out."""

    def rule(one: Instruction, new: New) -> list[str] | None:
        if not of_space(one, ("ld",), space) or not one.bytes:
            return None
        base, _ = address(one)
        if not base.startswith("%"):
            return None
        # 0 in all grids without a third dimension, which the compiler can't know.
        zero = new.before("zero", "b32", lambda name: [f"mov.u32 {name}, %ctaid.z;"])
        bits, one_ = new("b32"), ONE.get(one.kind, 0)
        lines = [
            f"cvt.u32.u64 {bits}, {base};" if new.size(base) == 8 else f"mov.b32 {bits}, {base};"
        ]
        for number, to in enumerate(_elements(one.operands[0])):
            part = new("b32")
            lines.append(f"add.s32 {part}, {bits}, {number};")
            lines.append(f"and.b32 {part}, {part}, {zero};")
            lines += _set(to, part, one_, one, new)
        return lines

    return rule


def _set(to: str, part: str, value: int, one: Instruction, new: New) -> list[str]:
    """`to` = part | value, in the register's own size."""
    size = new.size(to)
    guard = f"{one.guard} " if one.guard else ""
    if size == 4:
        return [f"or.b32 {part}, {part}, {value:#x};", f"{guard}mov.b32 {to}, {part};"]
    if size == 2:
        half = new("b16")
        return [
            f"or.b32 {part}, {part}, {value:#x};",
            f"cvt.u16.u32 {half}, {part};",
            f"{guard}mov.b16 {to}, {half};",
        ]
    wide = new("b64")
    return [
        f"cvt.u64.u32 {wide}, {part};",
        f"or.b64 {wide}, {wide}, {value:#x};",
        f"{guard}mov.b64 {to}, {wide};",
    ]


def _never(one: Instruction, value: str, new: New) -> tuple[list[str], str]:
    """Lines that set a predicate which never holds, made of what would be stored."""
    never = new("pred")
    if not value.startswith("%"):
        value = address(one)[0]
    if not value.startswith("%"):
        raise NotTried(f"neither value nor address is in a register: {one.text()}")
    size = new.size(value)
    kind = f"b{8 * size}"
    copy = new(kind)
    lines = [f"mov.{kind} {copy}, {value};", f"setp.eq.{kind} {never}, {copy}, {NEVER[size]};"]
    if one.guard.startswith("@!"):
        other = new("pred")
        lines.append(f"not.pred {other}, {one.guard[2:]};")
        lines.append(f"and.pred {never}, {never}, {other};")
    elif one.guard:
        lines.append(f"and.pred {never}, {never}, {one.guard[1:]};")
    return lines, never


def _guarded(one: Instruction, never: str) -> str:
    return Instruction(f"@{never}", one.form, one.operands).text()


def _elements(operand: str) -> list[str]:
    """Registers of one operand: of `{a, b}` both."""
    return [part.strip() for part in operand.strip().strip("{}").split(",")]
