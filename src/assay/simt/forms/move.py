"""Forms that name things: moves of symbols and machine registers, packs, addresses, parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faults import NotCheckable
from .table import SIZES, Match, Values

if TYPE_CHECKING:
    from ..emit import Emitter
    from ..ptx import Instruction

Made = list[tuple[str, str, str]]
LOCAL, SHARED, PARAM = "0xF1ull << 40", "0xF0ull << 40", "0xF2ull << 40"


def _mov(match: Match, item: Instruction, e: Emitter) -> Made:
    """One register, a pack `d, {a, b}` or its reverse `{a, b}, d`, low part first."""
    kind = match.groups["T"]
    to, source = item.operands
    if to.startswith("{"):
        parts = e.vector(to)
        width = SIZES[kind] * 8 // len(parts)
        value = e.value(source, f"b{SIZES[kind] * 8}")
        return [
            (part, f"b{width}", f"(u{width})(({value}) >> {width * index})")
            for index, part in enumerate(parts)
        ]
    if source.startswith("{"):
        parts = e.vector(source)
        width = SIZES[kind] * 8 // len(parts)
        whole = f"u{SIZES[kind] * 8}"
        terms = [
            f"(({whole})({e.value(part, f'b{width}')}) << {width * index})"
            for index, part in enumerate(parts)
        ]
        return [(to, f"b{SIZES[kind] * 8}", " | ".join(terms))]
    if kind == "pred":
        return [(to, "pred", f"({e.value(source, 'pred')}) & 1u")]
    bits = f"b{SIZES[kind] * 8}"
    return [(to, bits, e.value(source, bits))]


def _cvta(match: Match, item: Instruction, e: Emitter) -> Made:
    """Between a space's own addresses and generic ones. Global memory has one and the same."""
    space, kind = match.groups["space"].removesuffix("::cta"), match.groups["T"]
    to, source = item.operands
    value = e.value(source, kind)
    window = {"local": LOCAL, "shared": SHARED, "param": PARAM}.get(space)
    if window is None:
        return [(to, kind, value)]
    if match.groups["to"]:
        return [(to, kind, f"({value}) & 0xFFFFFFFFFFull")]
    return [(to, kind, f"({value}) + ({window})")]


def _isspacep(match: Match, item: Instruction, e: Emitter) -> Made:
    space = match.groups["space"].removesuffix("::cta").removesuffix("::cluster")
    address = e.value(item.operands[1], "u64")
    if space == "global":
        return [(item.operands[0], "pred", f"is_global({address})")]
    window = {"local": "LOCAL", "shared": "SHARED", "param": "PARAMETER"}[space]
    return [(item.operands[0], "pred", f"in_window({address}, {window}_WINDOW)")]


def _activemask(match: Match, item: Instruction, e: Emitter) -> Made:
    return [(item.operands[0], "b32", "W.mask")]


def _parameter(match: Match, item: Instruction, e: Emitter) -> Made:
    """A kernel's parameter, the same in all lanes."""
    kind = match.groups["T"]
    base, offset = e.base_and_offset(item.operands[1])
    start = e.fixed[base].offset + offset
    size = SIZES[kind]
    end = max(p.offset + p.bytes for p in e.fixed.values())
    if start < 0 or start + size * len(e.vector(item.operands[0])) > end:
        raise NotCheckable(f"{item.text}, beyond the parameters", item.places)
    letter = "s" if kind[0] == "s" else "u"
    bits = f"s{size * 8}" if letter == "s" else f"b{size * 8}"
    return [
        (register, bits, f"read_parameter<{letter}{size * 8}>(P + {start + index * size})")
        for index, register in enumerate(e.vector(item.operands[0]))
    ]


PARAMETER = Values("ld.param", _parameter)
"""What `ld.param` is where its place among the parameters is known."""

FORMS = (
    Values("mov.{T:pred|b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64|f16|bf16|f16x2|bf16x2}", _mov),
    Values("cvta[.{to:to}].{space:global|shared|shared::cta|local|const|param}.{T:u64|u32}", _cvta),
    Values("isspacep.{space:global|shared|shared::cta|shared::cluster|local|param}", _isspacep),
    Values("activemask.b32", _activemask),
)
