"""Rules on what is computed: float64 as float32, one branch a warp; bounds on registers."""

from __future__ import annotations

import re
import struct

from .entry import Instruction, New, NotTried, head, rewritten

LIMITS = re.compile(r"^\s*\.(?:minnctapersm|maxnreg)\s+\d+\s*$", re.MULTILINE)
DOUBLE = re.compile(r"0[dD]([0-9a-fA-F]{16})")


def single(ptx: str, name: str) -> tuple[str, int]:
    """float64 arithmetic in float32: registers of f64 become f32, and conversions copies.

    What is loaded or stored as f64 stays so, with a conversion. Raises NotTried where the bits of
    an f64 are taken apart (division, exp and their like do), or vectors of them are moved.
    """

    def rule(one: Instruction, new: New) -> list[str] | None:
        doubles = [o for o in one.operands if _is_double(o, new)]
        if "f64" not in one.parts and not doubles:
            return None
        if one.opcode in ("ld", "st"):
            return _memory(one, new)
        if "f64" not in one.parts or one.opcode in ("atom", "red", "shfl"):
            raise NotTried(f"the bits of a float64 are used as such: {one.text()}")
        operands = tuple(DOUBLE.sub(_as_float, operand) for operand in one.operands)
        form = one.form.replace("f64", "f32")
        if one.opcode == "cvt" and {"f64", "f32"} <= set(one.parts):
            form = "mov.f32"
        return [Instruction(one.guard, form, operands).text()]

    made, changed = rewritten(ptx, name, rule)
    return re.sub(r"(\.reg\s+)\.f64(\s+%(?!xg))", r"\1.f32\2", made), changed


def _is_double(operand: str, new: New) -> bool:
    names = re.findall(r"%[\w$]+", operand)
    return any(new.kinds.get(name.rstrip("0123456789")) == "f64" for name in names)


def _memory(one: Instruction, new: New) -> list[str]:
    if one.elements > 1 or one.kind not in ("f64", "b64"):
        raise NotTried(f"float64 numbers are moved as a vector, or as bits: {one.text()}")
    wide = new("f64")
    guard = f"{one.guard} " if one.guard else ""
    if one.opcode == "ld":
        load = Instruction(one.guard, one.form, (wide, *one.operands[1:])).text()
        return [load, f"{guard}cvt.rn.f32.f64 {one.operands[0]}, {wide};"]
    to, value = one.operands
    if not value.startswith("%"):
        return [one.text()]
    return [
        f"{guard}cvt.f64.f32 {wide}, {value};",
        Instruction(one.guard, one.form, (to, wide)).text(),
    ]


def _as_float(found: re.Match[str]) -> str:
    (value,) = struct.unpack(">d", bytes.fromhex(found[1]))
    try:
        packed = struct.pack(">f", value)
    except OverflowError:
        packed = struct.pack(">f", float("inf") if value > 0 else float("-inf"))
    return f"0f{packed.hex().upper()}"


def uniform(one: Instruction, new: New) -> list[str] | None:
    """Branches that the lanes of a warp take together: all as the first of them would."""
    if one.opcode != "bra" or not one.guard or "uni" in one.parts:
        return None
    wanted = one.guard.lstrip("@!")
    active, leader, own = (new("b32") for _ in range(3))
    together = new("pred")
    return [
        f"activemask.b32 {active};",
        f"brev.b32 {leader}, {active};",
        f"clz.b32 {leader}, {leader};",
        f"selp.b32 {own}, 1, 0, {wanted};",
        f"shfl.sync.idx.b32 {own}, {own}, {leader}, 31, {active};",
        f"setp.ne.s32 {together}, {own}, 0;",
        Instruction(f"@{'!' if '!' in one.guard else ''}{together}", one.form, one.operands).text(),
    ]


def roomy(ptx: str, name: str) -> tuple[str, int]:
    """Without the launch bounds that keep registers down."""
    begin, end = head(ptx, name)
    made, changed = LIMITS.subn("", ptx[begin:end])
    return ptx[:begin] + made + ptx[end:], changed


def at_most(ptx: str, name: str, registers: int) -> str:
    """With no more than so many registers a thread; what does not fit is spilled."""
    ptx, _ = roomy(ptx, name)
    _, end = head(ptx, name)
    return f"{ptx[:end].rstrip()}\n.maxnreg {registers}\n{ptx[end:]}"
