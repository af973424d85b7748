"""Where each register of a kernel lives: in a loop, in a block of code, or in the warp's memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .ptx import SYMBOL, Instruction

WITHOUT_TARGET = frozenset(
    [
        "st",
        "red",
        "bra",
        "brx",
        "cp",
        "membar",
        "fence",
        "ret",
        "exit",
        "trap",
        "call",
        "stmatrix",
        "prefetch",
        "prefetchu",
        "nanosleep",
        "pmevent",
        "griddepcontrol",
    ]
)


def targets(item: Instruction) -> list[str]:
    """The destination operand's registers, as written."""
    opcode, form = item.opcode, item.form
    if opcode in WITHOUT_TARGET or form.startswith(
        ("wmma.store", "mbarrier.init", "mbarrier.inval")
    ):
        return []
    if opcode in ("bar", "barrier") and ".red" not in form:
        return []
    return SYMBOL.findall(item.operands[0]) if item.operands else []


@dataclass
class Use:
    """Where a register occurs."""

    places: set[tuple[int, int]] = field(default_factory=set)
    first_defines: bool = False


Segments = list[list[list[Instruction]]]
"""Of each block of code: runs of lane-wise instructions, and the others each alone."""


@dataclass(frozen=True)
class Places:
    """register -> ("variable" | "array" | "warp", slot); slots of arrays needed, by bytes."""

    of: dict[str, tuple[str, int]]
    slots: dict[int, int]


def places_of(
    segments: Segments,
    registers: dict[str, str],
    size: Callable[[str], int],
    is_run: Callable[[tuple[int, int]], bool],
) -> Places:
    """Where each register that occurs in the segments lives."""
    uses: dict[str, Use] = {}
    for block, parts in enumerate(segments):
        for number, segment in enumerate(parts):
            for item in segment:
                _note(uses, registers, item, (block, number))
    arrays: dict[str, tuple[int, int, int]] = {}
    found: dict[str, tuple[str, int]] = {}
    for name, use in uses.items():
        blocks = {b for b, _ in use.places}
        if len(blocks) > 1 or not use.first_defines:
            found[name] = ("warp", 0)
        elif len(use.places) == 1 and is_run(next(iter(use.places))):
            found[name] = ("variable", 0)
        else:
            order = sorted(number for _, number in use.places)
            arrays[name] = (next(iter(blocks)), order[0], order[-1])
    slots = {2: 0, 4: 0, 8: 0}
    for name, slot in _share(arrays, size, slots).items():
        found[name] = ("array", slot)
    return Places(found, slots)


def _note(
    uses: dict[str, Use], registers: dict[str, str], item: Instruction, at: tuple[int, int]
) -> None:
    written = [r for r in targets(item) if r in registers]
    operands = item.operands[1:] if written else item.operands
    read = [r for operand in operands for r in SYMBOL.findall(operand) if r in registers]
    if item.guard:
        read += [item.guard, *written]
    for register in read:
        uses.setdefault(register, Use()).places.add(at)
    for register in written:
        if register not in uses:
            uses[register] = Use(first_defines=True)
        uses[register].places.add(at)


def _share(
    arrays: dict[str, tuple[int, int, int]], size: Callable[[str], int], slots: dict[int, int]
) -> dict[str, int]:
    """Slots for arrays that live inside a block: those that don't overlap share one."""
    chosen: dict[str, int] = {}
    by_block: dict[int, list[tuple[int, int, str]]] = {}
    for name, (block, first, last) in arrays.items():
        by_block.setdefault(block, []).append((first, last, name))
    for lives in by_block.values():
        busy: dict[int, list[int]] = {2: [], 4: [], 8: []}
        for first, last, name in sorted(lives):
            ends = busy[size(name)]
            free = next((k for k, end in enumerate(ends) if end < first), len(ends))
            ends[free:] = [last] if free == len(ends) else [last, *ends[free + 1 :]]
            chosen[name] = free
        for bytes_, ends in busy.items():
            slots[bytes_] = max(slots[bytes_], len(ends))
    return chosen
