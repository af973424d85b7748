"""Loads and stores of every space."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .table import SIZES, Action, Match

if TYPE_CHECKING:
    from ..emit import Emitter
    from ..ptx import Instruction

TYPES = "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64|f16|bf16|f16x2"
SCOPES = ("cta", "cluster", "gpu", "sys")
ORDERS = "|".join(
    f"{order}.{scope}" for order in ("relaxed", "acquire", "release") for scope in SCOPES
)
# Hints of what a cache should keep: they change no value, and no line is kept here.
HINTS = (
    "[.{l1:L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate}]"
    "[.{l2:L2::evict_normal|L2::evict_first|L2::evict_last}][.L2::cache_hint]"
    "[.{prefetch:L2::64B|L2::128B|L2::256B}]"
)
WIDEST = 16
"""Bytes a lane of the widest access before sm_100."""


def space_of(match: Match) -> str:
    """`global`, `shared`, `local`, `param` or `generic`."""
    space = match.groups["space"].removesuffix("::cta")
    return {"": "generic", "const": "global"}.get(space, space)


def _call(
    kind: str, match: Match, item: Instruction, address: str, size: int, pack: str, e: Emitter
) -> str:
    space = space_of(match)
    base, _ = e.base_and_offset(address)
    if space == "param":  # of a call: kept in local memory; or reached through a pointer
        space = "local" if base in e.local else "parameter"
    narrow = space in ("shared", "local")
    e.touches(space, size)
    at = e.address(address, "u32" if narrow else "u64")
    order = match.groups.get("order", "")
    # A plain read of what a compare-and-swap then names as expected may be overtaken by others:
    # the operation finds out.
    expected = kind == "load" and address in e.compared
    strong = "_strong" if (order not in ("", "weak") or expected) and space in STRONG else ""
    site = e.site(item, space)
    fence = ""
    if order.startswith("release"):
        fence = "fence(W, 1); "
    after = " acquire_seen(W);" if order.startswith("acquire") else ""
    return f"{fence}{kind}_{space}{strong}<{size}>(W, m, {at}, {site}, {pack});{after}"


STRONG = ("global", "shared", "generic")


def _load(match: Match, item: Instruction, e: Emitter) -> str:
    kind = match.groups["T"]
    element = SIZES[kind] if kind != "f16x2" else 4
    registers = e.vector(item.operands[0])
    size = element * len(registers)
    letter = "s" if kind[0] == "s" else "u"
    pack = e.fresh("p")
    lines = [f"const u32 m = {e.mask(item)};"]
    only = registers[0]
    direct = len(registers) == 1 and only != "_" and e.size(only) == element
    if direct:
        lines.append(_call("load", match, item, item.operands[1], size, e.array(only), e))
        return "\n".join(lines)
    e.before.append(f"alignas(64) {letter}{element * 8} {pack}[{32 * len(registers)}];")
    lines.append(_call("load", match, item, item.operands[1], size, pack, e))
    for index, register in enumerate(registers):
        if register != "_":
            value = f"({e.kind(register)}){pack}[l * {len(registers)} + {index}]"
            lines.append(
                f"for (u32 l = 0; l < 32; l++) if (m >> l & 1) {e.array(register)}[l] = {value};"
            )
    return "\n".join(lines)


def _store(match: Match, item: Instruction, e: Emitter) -> str:
    kind = match.groups["T"]
    element = SIZES[kind] if kind != "f16x2" else 4
    values = e.vector(item.operands[1])
    size = element * len(values)
    only = values[0]
    lines = [f"const u32 m = {e.mask(item)};"]
    if len(values) == 1 and only in e.function.registers and e.size(only) == element:
        pack = e.array(only)
    else:
        pack = e.fresh("p")
        terms = " ".join(
            f"{pack}[l * {len(values)} + {index}] = (u{element * 8})"
            f"({e.value(value, f'b{element * 8}')});"
            for index, value in enumerate(values)
        )
        e.before.append(
            f"alignas(64) u{element * 8} {pack}[{32 * len(values)}]; "
            f"for (u32 l = 0; l < 32; l++) {{ {terms} }}"
        )
    lines.append(_call("store", match, item, item.operands[0], size, pack, e))
    return "\n".join(lines)


def _nothing(match: Match, item: Instruction, e: Emitter) -> str:
    return ";"


_SPACE = "[.{space:global|shared|shared::cta|local|param|const}]"
_VECTOR = f"[.{{vec:v2|v4}}].{{T:{TYPES}}}"

FORMS = (
    Action(
        f"ld[.{{order:weak|volatile|{ORDERS}}}]{_SPACE}[.{{cop:ca|cg|cs|lu|cv}}][.nc]{HINTS}{_VECTOR}",
        _load,
        site=True,
    ),
    Action(
        f"st[.{{order:weak|volatile|{ORDERS}}}]{_SPACE}[.{{cop:wb|cg|cs|wt}}]{HINTS}{_VECTOR}",
        _store,
        site=True,
    ),
    # Hints: no value depends on them.
    Action(
        "prefetch[.{space:global|local}].{level:L1|L2|L2::evict_last|L2::evict_normal}", _nothing
    ),
    Action("prefetchu.L1", _nothing),
)
