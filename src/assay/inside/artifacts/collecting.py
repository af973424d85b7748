"""What every way's collector needs: a dry run, the launches noted, code disassembled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ... import single
from ...errors import NotRun
from ...simt.adapters import Compiled as Launched
from ...simt.adapters import Size
from ...single import Placed, Single
from ...types import Compiled, replace
from . import machine_code
from .machine_code import Assembled
from .model import Part

Pick = Callable[[], Single]
"""Imports the user's code and gives the variant with its case."""


@dataclass
class Found:
    """What a collector found."""

    one: Single
    placed: Placed
    arch: str
    """What its GPU code was compiled for."""
    parts: list[Part] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass
class Launches:
    """Launches that were asked for and not run, by kernel: the first of each, and how many."""

    first: dict[tuple[str, str], tuple[Launched, Size, Size, int]] = field(default_factory=dict)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def note(
        self, compiled: Launched, grid: Size, block: Size, args: list[Any], shared: int
    ) -> None:
        """As an adapter calls it for every launch."""
        key = compiled.name, compiled.ptx
        self.first.setdefault(key, (compiled, grid, block, shared))
        self.counts[key] = self.counts.get(key, 0) + 1

    def __iter__(self) -> Any:
        """(compiled, grid, block, dynamic shared memory in bytes, launches) of each kernel."""
        return ((*known, self.counts[key]) for key, known in self.first.items())


def dry(pick: Pick, arch: str) -> tuple[Single, Placed]:
    """The variant called on inputs on the CPU, where launches are noted and nothing is computed."""
    one = pick()
    placed = single.place(one, "cpu")
    kernel = single.built(placed, "cpu", arch)
    with torch.no_grad():
        kernel.run(placed.outputs, list(placed.inputs))
    return one, placed


def launched(label: str, launches: Launches) -> None:
    """Raises NotRun where nothing was launched."""
    if not launches.first:
        raise NotRun(f"{label} launched no kernel on this case: choose another with --case")


def geometry(
    report: Compiled | None, name: str, arch: str, grid: Size, block: Size, shared: int
) -> Compiled:
    """A compiler's report with the geometry of a launch."""
    known = report or Compiled(name=name, arch=arch)
    return replace(known, name=name, grid=grid, block=block, dynamic_shared_bytes=shared)


def sass_of(cubin: bytes, entry: str) -> tuple[dict[str, str], dict[str, str]]:
    """({"sass": text}, {}) of a kernel, or ({}, {"sass": why there is none})."""
    try:
        found = machine_code.disassemble(cubin)
    except NotRun as reason:
        return {}, {"sass": str(reason)}
    if entry not in found:
        return {}, {"sass": f"the machine code has {', '.join(found) or 'nothing'}, not {entry}"}
    return {"sass": found[entry]}, {}


def assembled(
    ptx: str, entry: str, arch: str, flags: tuple[str, ...] = ("-lineinfo",)
) -> tuple[Assembled | None, dict[str, str], dict[str, str]]:
    """(machine code, texts, absent) of a kernel's PTX."""
    try:
        made = machine_code.assemble(ptx, arch, flags)
    except NotRun as reason:
        return None, {}, {"sass": str(reason)}
    return made, *sass_of(made.cubin, entry)
