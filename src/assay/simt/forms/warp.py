"""What the lanes of a warp, and the warps of a block, do together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ptx import constant
from .table import Action, Match

if TYPE_CHECKING:
    from ..emit import Emitter
    from ..ptx import Instruction

EVERY = "0xffffffff"
OUT = "{ if (pc == OUT) return; goto dispatch; }"


def together(e: Emitter, site: int, operand: str, anywhere: int = 0) -> str:
    """Waits for the lanes that an instruction names; they come by their own ways.

    operand: each lane's member mask, in which its own bit must be. anywhere: the others may wait at
    another instruction of the kind (bar.warp.sync since sm_70).
    """
    every = (constant(operand) or 0) & 0xFFFFFFFF == 0xFFFFFFFF
    named = "ALL" if every else f"any_of(W.mask, {e.lanes(operand, 'b32')})"
    own = "" if every else f" check_members(W, {site}, {e.lanes(operand, 'b32')});"
    return (
        f"if (W.splits || W.passed) {{ pc = wait_lanes(W, {e.block}, {site}, {named}, "
        f"{anywhere}); "
        f"if (pc != {e.block}) {OUT} }} {e.counted(e.block)}{own}"
    )


def _barrier(match: Match, item: Instruction, e: Emitter) -> str:
    operands = list(item.operands)
    site = e.site(item)
    votes, operation, result = "0u", 0, ""
    reduction = match.groups.get("reduction", "")
    if reduction:
        result = operands.pop(0)
        predicate = operands.pop()
        flipped = predicate.startswith("!")
        array = e.lanes(predicate.lstrip("!"), "b32")
        votes = f"({'~' if flipped else ''}bits({array}) & W.mask)"
        operation = {"popc": 0, "and": 1, "or": 2}[reduction]
    number = e.uniform(operands[0])
    count = e.uniform(operands[1]) if len(operands) > 1 else "0u"
    text = (
        f"if (!W.passed) {{ pc = gather(W, {e.block}, {site}); if (pc != {e.block}) {OUT} "
        f"if (!wait_barrier(W, {e.block}, {site}, {number}, {count}, {votes}, {operation})) "
        f"return; }} W.passed = 0; {e.counted(e.block)}"
    )
    if result:
        text += (
            f" for (u32 l = 0; l < 32; l++) if (W.mask >> l & 1) {e.target(result)}[l] = W.vote;"
        )
    return text


def _arrive(match: Match, item: Instruction, e: Emitter) -> str:
    number, count = e.uniform(item.operands[0]), e.uniform(item.operands[1])
    return f"arrive_barrier(W, {e.site(item)}, {number}, {count}, {e.mask(item)});"


def _warp_barrier(match: Match, item: Instruction, e: Emitter) -> str:
    site = e.site(item)
    return f"{together(e, site, item.operands[0], 1)} sync_warp(W);"


def _shuffle(match: Match, item: Instruction, e: Emitter) -> str:
    to = [t.strip() for t in item.operands[0].split("|")]
    site = e.site(item)
    value, other, clamp = (e.lanes(operand, "b32") for operand in item.operands[1:4])
    mode = {"up": 0, "down": 1, "bfly": 2, "idx": 3}[match.groups["mode"]]
    inside = e.target(to[1]) if len(to) > 1 else "nullptr"
    return (
        f"{together(e, site, item.operands[4])} shuffle(W, {e.mask(item)}, {mode}, "
        f"{e.target(to[0])}, {inside}, {value}, {other}, {clamp}, {site});"
    )


def _vote(match: Match, item: Instruction, e: Emitter) -> str:
    site = e.site(item)
    predicate = item.operands[1]
    flipped = "~" if predicate.startswith("!") else ""
    array = e.lanes(predicate.lstrip("!"), "b32")
    what = {
        "ballot": "yes",
        "any": "(u32)(yes != 0)",
        "all": "(u32)(yes == (m & named[l]))",
        "uni": "(u32)(yes == (m & named[l]) || !yes)",
    }[match.groups["mode"]]
    return (
        f"{together(e, site, item.operands[2])} const u32 m = {e.mask(item)}; "
        f"const u32 every = {flipped}bits({array}) & m; const u32* const named = "
        f"{e.lanes(item.operands[2], 'b32')}; "
        f"for (u32 l = 0; l < 32; l++) if (m >> l & 1) {{ const u32 yes = every & named[l]; "
        f"{e.target(item.operands[0])}[l] = {what}; }}"
    )


def _match(match: Match, item: Instruction, e: Emitter) -> str:
    to = [t.strip() for t in item.operands[0].split("|")]
    site = e.site(item)
    kind = match.groups["T"]
    value = e.lanes(item.operands[1], kind)
    every = int(match.groups["mode"] == "all")
    flag = e.target(to[1]) if len(to) > 1 else "nullptr"
    return (
        f"{together(e, site, item.operands[2])} match_lanes(W, {e.mask(item)}, "
        f"{every}, {e.target(to[0])}, {flag}, {value}, {e.lanes(item.operands[2], 'b32')});"
    )


def _reduce(match: Match, item: Instruction, e: Emitter) -> str:
    site = e.site(item)
    operation = f"ATOM_{match.groups['op'].upper()}"
    signed = int(match.groups["T"] == "s32")
    return (
        f"{together(e, site, item.operands[2])} reduce_lanes(W, {e.mask(item)}, "
        f"{operation}, {signed}, {e.target(item.operands[0])}, {e.lanes(item.operands[1], 'b32')}, "
        f"{e.lanes(item.operands[2], 'b32')});"
    )


def _elect(match: Match, item: Instruction, e: Emitter) -> str:
    to = [t.strip() for t in item.operands[0].split("|")]
    site = e.site(item)
    return (
        f"{together(e, site, item.operands[1])} const u32 lead = "
        f"(u32)__builtin_ctz(W.mask); for (u32 l = 0; l < 32; l++) if (W.mask >> l & 1) {{ "
        f"{e.target(to[0])}[l] = lead; {e.target(to[1])}[l] = l == lead; }}"
    )


def _load_matrix(match: Match, item: Instruction, e: Emitter) -> str:
    site = e.site(item, "shared")
    registers = e.vector(item.operands[0])
    e.touches("shared", 16)
    at = e.address(item.operands[1], "u32")
    to = ", ".join(e.target(r) for r in registers)
    transposed = int(bool(match.groups["trans"]))
    return (
        f"{together(e, site, EVERY)} u32* const to[] = {{{to}}}; "
        f"load_matrix(W, {site}, {at}, {len(registers)}, {transposed}, to);"
    )


def _store_matrix(match: Match, item: Instruction, e: Emitter) -> str:
    site = e.site(item, "shared")
    e.touches("shared", 16)
    at = e.address(item.operands[0], "u32")
    sources = [e.lanes(r, "b32") for r in e.vector(item.operands[1])]
    transposed = int(bool(match.groups["trans"]))
    return (
        f"{together(e, site, EVERY)} const u32* const from[] = {{{', '.join(sources)}}}; "
        f"store_matrix(W, {site}, {at}, {len(sources)}, {transposed}, from);"
    )


_COUNT = "{count:x1|x2|x4}"
FORMS = (
    Action("bar[.cta].sync", _barrier, site=True),
    Action("barrier[.cta].sync[.aligned]", _barrier, site=True),
    Action("bar[.cta].red.{reduction:popc}.u32", _barrier, site=True),
    Action("bar[.cta].red.{reduction:and|or}.pred", _barrier, site=True),
    Action("barrier[.cta].red.{reduction:popc}[.aligned].u32", _barrier, site=True),
    Action("barrier[.cta].red.{reduction:and|or}[.aligned].pred", _barrier, site=True),
    Action("bar[.cta].arrive", _arrive, site=True),
    Action("barrier[.cta].arrive[.aligned]", _arrive, site=True),
    Action("bar.warp.sync", _warp_barrier, site=True),
    Action("shfl.sync.{mode:up|down|bfly|idx}.b32", _shuffle, site=True),
    Action("vote.sync.{mode:ballot}.b32", _vote, site=True),
    Action("vote.sync.{mode:any|all|uni}.pred", _vote, site=True),
    Action("match.{mode:any|all}.sync.{T:b32|b64}", _match, site=True),
    Action("redux.sync.{op:add|min|max}.{T:u32|s32}", _reduce, site=True),
    Action("redux.sync.{op:and|or|xor}.{T:b32}", _reduce, site=True),
    Action("elect.sync", _elect, site=True),
    Action(
        f"ldmatrix.sync.aligned.m8n8.{_COUNT}[.trans].{{s:shared|shared::cta}}.b16",
        _load_matrix,
        site=True,
    ),
    Action(
        f"stmatrix.sync.aligned.m8n8.{_COUNT}[.trans].{{s:shared|shared::cta}}.b16",
        _store_matrix,
        site=True,
    ),
)
