"""Branches, ends, calls of the CUDA runtime, fences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faults import NotCheckable
from .table import Action, Match

if TYPE_CHECKING:
    from ..emit import Emitter
    from ..ptx import Instruction

OUT = "if (pc == OUT) return; goto dispatch;"


def _bra(match: Match, item: Instruction, e: Emitter) -> str:
    to = e.flow.labels[item.operands[0]]
    if not item.guard:
        return e.jump(to)
    following = e.block + 1  # there is one: a kernel's last instruction has no guard
    counts = f" if (pc <= {e.block} && ++W.spins >= L.quota) {{ spun(W, pc); return; }}"
    return (
        f"const u32 taken = {e.mask(item)}; if (taken == W.mask) {e.jump(to)} "
        f"if (!taken) goto B{following}; pc = diverge(W, taken, {to}, {following});"
        f"{counts} goto dispatch;"
    )


def _brx(match: Match, item: Instruction, e: Emitter) -> str:
    labels = e.function.tables[item.operands[1]]
    to = ", ".join(str(e.flow.labels[label]) for label in labels)
    index = e.lanes(item.operands[0], "b32")
    return (
        f"static const u32 to[] = {{{to}}}; pc = branch_table(W, {index}, to, {len(labels)}); "
        f"if (pc <= {e.block} && ++W.spins >= L.quota) {{ spun(W, pc); return; }} {OUT}"
    )


def _leave(match: Match, item: Instruction, e: Emitter) -> str:
    if not item.guard:
        return f"pc = leave(W, W.mask); {OUT}"
    return (
        f"const u32 gone = {e.mask(item)}; if (gone) {{ const bool all = gone == W.mask; "
        f"pc = leave(W, gone); if (all) {{ {OUT} }} }}"
    )


def _trap(match: Match, item: Instruction, e: Emitter) -> str:
    site = e.site(item)
    return (
        f"const u32 m = {e.mask(item)}; trap(W, {site}, TRAP, m); if (m == W.mask) return; "
        "if (m) return;"
    )


def _fence(match: Match, item: Instruction, e: Emitter) -> str:
    scope = match.groups["scope"]
    return f"if ({e.mask(item)}) fence(W, {0 if scope == 'cta' else 1});"


def _nothing(match: Match, item: Instruction, e: Emitter) -> str:
    return ";"


def _print(match: Match, item: Instruction, e: Emitter) -> str:
    """vprintf(format, arguments): both are kept in `.param` variables of the call."""
    result, text, arguments = item.operands
    for name in item.operands:
        if name not in e.local:
            raise NotCheckable(f"{item.form} with the argument {name}", item.places)
    site = e.site(item, "local")
    lines = []
    for name, operand in (("f", text), ("v", arguments)):
        lines.append(
            f"alignas(64) u64 {name}[32]; alignas(64) u32 {name}a[32]; "
            f"for (u32 l = 0; l < 32; l++) {name}a[l] = {e.local[operand]}u; "
            f"load_local<8>(W, m, {name}a, {site}, {name});"
        )
    lines.append(
        f"alignas(64) u32 r[32]; print(W, m, f, v, {site}, r); "
        f"for (u32 l = 0; l < 32; l++) fa[l] = {e.local[result]}u; "
        f"store_local<4>(W, m, fa, {site}, r);"
    )
    return f"const u32 m = {e.mask(item)}; " + "\n".join(lines)


def _assert(match: Match, item: Instruction, e: Emitter) -> str:
    """__assertfail(message, file, line, function, character size)."""
    message, file, line, function = item.operands[:4]
    for name in item.operands[:4]:
        if name not in e.local:
            raise NotCheckable(f"{item.form} with the argument {name}", item.places)
    site = e.site(item, "local")
    lines = [f"const u32 m = {e.mask(item)}; alignas(64) u32 at[32];"]
    for name, operand, size in (
        ("text", message, 8),
        ("file", file, 8),
        ("line", line, 4),
        ("name", function, 8),
    ):
        lines.append(
            f"alignas(64) u{size * 8} {name}[32]; "
            f"for (u32 l = 0; l < 32; l++) at[l] = {e.local[operand]}u; "
            f"load_local<{size}>(W, m, at, {site}, {name});"
        )
    lines.append(f"assertion(W, m, text, file, line, name, {site}); if (m) return;")
    return "\n".join(lines)


FORMS = (
    Action("bra[.uni]", _bra),
    Action("brx.idx[.uni]", _brx),
    Action("ret[.uni]", _leave),
    Action("exit", _leave),
    Action("trap", _trap, site=True),
    Action("call vprintf", _print, site=True),
    Action("call __assertfail", _assert, site=True),
    Action("membar.{scope:cta|gl|sys}", _fence),
    Action("fence[.{order:sc|acq_rel|acquire|release}].{scope:cta|cluster|gpu|sys}", _fence),
    # Time is not modelled: a sleeping warp may as well be one that is slow.
    Action("nanosleep.u32", _nothing),
    Action("pmevent[.mask]", _nothing),
    # A kernel here never overlaps the one before it.
    Action("griddepcontrol.{what:launch_dependents|wait}", _nothing),
)
