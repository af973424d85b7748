"""Atomic operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .table import SIZES, Action, Match

if TYPE_CHECKING:
    from ..emit import Emitter
    from ..ptx import Instruction

TYPES = {
    **{"u32": "U32", "b32": "U32", "s32": "S32", "u64": "U64", "b64": "U64", "s64": "S64"},
    **{"f32": "F32", "f64": "F64", "f16": "F16", "bf16": "BF16", "f16x2": "F16X2"},
    **{"bf16x2": "BF16X2", "b16": "U16"},
}
ORDER = {"": 0, "relaxed": 0, "acquire": 1, "release": 2, "acq_rel": 3}
_ORDER = "{order:relaxed|acquire|release|acq_rel}"
_SCOPE = "{scope:cta|cluster|gpu|sys}"
_SPACE = "{space:global|shared|shared::cta}"
ALLOWED = {
    "add": "u32 s32 u64 s64 f32 f64 f16 bf16 f16x2 bf16x2",
    "min": "u32 s32 u64 s64",
    "max": "u32 s32 u64 s64",
    "and": "b32 b64",
    "or": "b32 b64",
    "xor": "b32 b64",
    "exch": "b32 b64",
    "cas": "b16 b32 b64",
    "inc": "u32",
    "dec": "u32",
}
"""Types of each operation (PTX ISA, atom and red)."""


def _atomic(match: Match, item: Instruction, e: Emitter) -> str:
    operation, kind = match.groups["op"], match.groups["T"]
    operands = list(item.operands)
    result = operands.pop(0) if item.opcode == "atom" else "_"
    space = match.groups["space"].removesuffix("::cta") or "generic"
    size = SIZES[kind]
    e.touches(space, size)
    address = operands.pop(0)
    at = e.address(address, "u32" if space == "shared" else "u64")
    if space == "shared":
        wide = e.fresh("g")
        e.before.append(
            f"alignas(64) u64 {wide}[32]; for (u32 l = 0; l < 32; l++) "
            f"{wide}[l] = shared_to_generic(W, {at}[l]);"
        )
        at = wide
    wanted = 2 if operation == "cas" else 1
    packs = [e.lanes(operand, f"b{size * 8}") for operand in operands[:wanted]]
    packs += ["nullptr"] * (2 - wanted)
    old = "nullptr" if result == "_" else e.target(result)
    return (
        f"atomic(W, {e.mask(item)}, {at}, {e.site(item, space)}, ATOM_{operation.upper()}, "
        f"TYPE_{TYPES[kind]}, {ORDER[match.groups['order']]}, {old}, {', '.join(packs)});"
    )


def _rows() -> list[Action]:
    made = []
    for operation, types in ALLOWED.items():
        what = f"{{op:{operation}}}[.noftz][.L2::cache_hint].{{T:{types.replace(' ', '|')}}}"
        opcodes = ("atom",) if operation in ("exch", "cas") else ("atom", "red")
        for opcode in opcodes:
            for head in (f"[.{_ORDER}][.{_SCOPE}][.{_SPACE}]", f".{_SPACE}[.{_SCOPE}][.{_ORDER}]"):
                # ptxas takes the modifiers in Triton's order as well.
                made.append(Action(f"{opcode}{head}.{what}", _atomic, site=True))
            made.append(Action(f"{opcode}.{_SPACE}.{_ORDER}.{_SCOPE}.{what}", _atomic, site=True))
    return made


FORMS = tuple(_rows())
