"""A variant's machine code in a few lines: what the compiler reports, and what is in the code."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from ...errors import NotRun
from ...report import units
from ...types import Compiled
from . import mix
from .model import Part, Shown

DOUBLES = ("float64", "complex128")
MOST_DOUBLES = 4
WIDTH = 96


def text(shown: Shown) -> str:
    """Head, a block for each kernel, notes, and which levels there are."""
    return "\n".join([head(shown), *(line for p in shown.parts for line in _part(shown, p))])


def head(shown: Shown) -> str:
    """Which variant, case and architecture."""
    target = "this CPU" if shown.way == "cpp" else shown.arch
    return f"{shown.op}  {shown.label}  {shown.case}\ncompiled for {target}, not run"


def mix_of(shown: Shown, part: Part) -> mix.Mix | None:
    """Of the SASS, else of the PTX; None for code of the CPU, or where there is neither.

    Raises NotRun for PTX that can't be read.
    """
    if "sass" in part.texts:
        return mix.of_sass(part.texts["sass"])
    ptx = part.texts.get("ptx") or shown.texts.get("ptx", "")
    return mix.of_ptx(ptx, part.entry) if part.entry and ptx else None


def _part(shown: Shown, part: Part) -> Iterator[str]:
    yield ""
    yield part.name
    if part.report is not None:
        yield from (f"  {line}" for line in _report(part, part.report))
    found = None
    try:
        found = mix_of(shown, part)
    except NotRun as unread:
        yield f"  its PTX can't be counted: {unread}"
    if found is not None:
        for line in _mix(shown, part, found):
            yield from textwrap.wrap(
                line, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
            )
    if "asm" in part.texts:
        yield f"  {_asm(part.texts['asm'])}"
    for level, reason in part.absent.items():
        yield f"  no {level}: {reason}"


def _report(part: Part, facts: Compiled) -> Iterator[str]:
    if facts.grid and facts.block:
        times = f"  {units.count(part.launches, 'launch')}" if part.launches else ""
        yield f"grid {_size(facts.grid)}  block {_size(facts.block)}{times}"
    if facts.registers is None:
        yield "registers and spills: no compiler said"
        return
    spilled = (facts.spill_store_bytes, facts.spill_load_bytes)
    spills = f"spills {spilled[0]} + {spilled[1]} bytes" if any(spilled) else "no spills"
    if None in spilled:
        spills = "spills not said"
    stack = f"stack {facts.stack_bytes} bytes" if facts.stack_bytes else "no stack"
    by = f"  ({part.reported_by})" if part.reported_by else ""
    yield f"{facts.registers} registers, {spills}, {stack}, {_shared(facts)}{by}"


def _shared(facts: Compiled) -> str:
    static, dynamic = facts.shared_bytes or 0, facts.dynamic_shared_bytes or 0
    if not static and not dynamic:
        return "no shared memory"
    return f"shared memory {static} + {dynamic} bytes (static + dynamic)"


def _mix(shown: Shown, part: Part, found: mix.Mix) -> Iterator[str]:
    yield f"{found.of}, {units.count(found.instructions, 'instruction')}: " + ", ".join(
        f"{name} {number}" for name, number in found.classes.items()
    )
    yield f"global loads {widths(found.loads)}; stores {widths(found.stores)}"
    yield (
        f"conditional branches {found.branches}, loops {found.loops}, "
        f"other instructions under a predicate {found.guarded}"
    )
    if found.local:
        yield f"{found.local} instructions that load or store local memory"
    if found.doubles and part.launches and not set(shown.dtypes) & set(DOUBLES):
        number = units.count(len(found.doubles), "instruction")
        yield f"float64 in a kernel of {', '.join(shown.dtypes)}: {number}"
        for one in found.doubles[:MOST_DOUBLES]:
            yield f"  {one.place or 'no line'}: {one.text}"


def _asm(text: str) -> str:
    functions = sum(1 for line in text.splitlines() if line.endswith(">:"))
    code = sum(1 for line in text.splitlines() if line.startswith("  "))
    return f"{units.count(functions, 'function')} for the CPU, {units.count(code, 'instruction')}"


def widths(found: dict[int, int]) -> str:
    """`1 of 128 bits, 2 of 32 bits`, as there are."""
    return ", ".join(f"{count} of {bits} bits" for bits, count in found.items()) or "none"


def _size(sizes: tuple[int, int, int]) -> str:
    kept = list(sizes)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return "x".join(f"{n:,}" for n in kept)
