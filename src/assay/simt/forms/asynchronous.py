"""Copies that go on while a kernel does, and the barriers that count them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ptx import constant
from .table import Action, Match

if TYPE_CHECKING:
    from ..emit import Emitter
    from ..ptx import Instruction


def _copy(match: Match, item: Instruction, e: Emitter) -> str:
    """cp.async: `[to], [from], bytes{, source bytes or ignore}{, cache policy}`."""
    operands = list(item.operands)
    size = constant(operands[2]) or 0
    rest = operands[3:]
    if match.groups["hint"]:
        rest = rest[:-1]
    to, source = e.address(operands[0], "u32"), e.address(operands[1], "u64")
    if rest and e.function.registers.get(rest[0].lstrip("!")) == "pred":
        ignored = e.value(rest[0], "pred")
        wanted = e.fresh("n")
        e.before.append(
            f"alignas(64) u32 {wanted}[32]; for (u32 l = 0; l < 32; l++) "
            f"{wanted}[l] = {ignored} ? 0u : {size}u;"
        )
    else:
        wanted = e.lanes(rest[0] if rest else str(size), "b32")
    e.touches("global", size)
    e.touches("shared", size)
    site = e.site(item, "shared")
    return f"copy_async(W, {e.mask(item)}, {to}, {source}, {site}, {size}, {wanted});"


def _commit(match: Match, item: Instruction, e: Emitter) -> str:
    return f"commit_async(W, {e.mask(item)});"


def _wait(match: Match, item: Instruction, e: Emitter) -> str:
    return f"wait_async(W, {e.mask(item)}, {constant(item.operands[0])});"


def _wait_all(match: Match, item: Instruction, e: Emitter) -> str:
    return f"wait_async_all(W, {e.mask(item)});"


def _count(e: Emitter, operands: tuple[str, ...], index: int) -> str:
    return e.lanes(operands[index] if len(operands) > index else "1", "b32")


def _init(match: Match, item: Instruction, e: Emitter) -> str:
    at, site = e.address(item.operands[0], "u32"), e.site(item, "shared")
    return f"mbarrier_init(W, {e.mask(item)}, {at}, {e.lanes(item.operands[1], 'b32')}, {site});"


def _inval(match: Match, item: Instruction, e: Emitter) -> str:
    at, site = e.address(item.operands[0], "u32"), e.site(item, "shared")
    return f"mbarrier_inval(W, {e.mask(item)}, {at}, {site});"


def _arrive(match: Match, item: Instruction, e: Emitter) -> str:
    to, address = item.operands[0], item.operands[1]
    at, site = e.address(address, "u32"), e.site(item, "shared")
    state = "nullptr" if to == "_" else e.target(to)
    count = _count(e, item.operands, 2)
    mask = e.mask(item)
    return f"mbarrier_arrive(W, {mask}, {at}, {count}, 0, {site}, (u64*){state});"


def _arrive_async(match: Match, item: Instruction, e: Emitter) -> str:
    at, site = e.address(item.operands[0], "u32"), e.site(item, "shared")
    noinc = int(bool(match.groups["noinc"]))
    return f"mbarrier_arrive_async(W, {e.mask(item)}, {at}, {noinc}, {site});"


def _test(match: Match, item: Instruction, e: Emitter) -> str:
    done, address, state = item.operands[:3]
    at, site = e.address(address, "u32"), e.site(item, "shared")
    parity = int(bool(match.groups["parity"]))
    if parity:
        wide = e.fresh("s")
        e.before.append(
            f"alignas(64) u64 {wide}[32]; for (u32 l = 0; l < 32; l++) "
            f"{wide}[l] = {e.value(state, 'u32')};"
        )
    else:
        wide = e.lanes(state, "b64")
    target = e.target(done)
    return f"mbarrier_test(W, {e.mask(item)}, {at}, {wide}, {parity}, {site}, {target});"


_SHARED = "[.{space:shared|shared::cta}]"
FORMS = (
    Action(
        "cp.async.{cache:ca|cg}.{to:shared|shared::cta}.global[.{hint:L2::cache_hint}]"
        "[.{prefetch:L2::64B|L2::128B|L2::256B}]",
        _copy,
        site=True,
    ),
    Action("cp.async.commit_group", _commit),
    Action("cp.async.wait_group", _wait),
    Action("cp.async.wait_all", _wait_all),
    Action(f"cp.async.mbarrier.arrive[.noinc]{_SHARED}.b64", _arrive_async, site=True),
    Action(f"mbarrier.init{_SHARED}.b64", _init, site=True),
    Action(f"mbarrier.inval{_SHARED}.b64", _inval, site=True),
    Action(f"mbarrier.arrive[.release.cta]{_SHARED}.b64", _arrive, site=True),
    Action(f"mbarrier.test_wait[.parity][.acquire.cta]{_SHARED}.b64", _test, site=True),
    Action(f"mbarrier.try_wait[.parity][.acquire.cta]{_SHARED}.b64", _test, site=True),
)
