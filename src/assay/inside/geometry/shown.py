"""The geometry of what `assay show` compiled: its `--level geometry`."""

from __future__ import annotations

from collections.abc import Iterator

from ..artifacts.model import Part, Shown
from . import geometry
from .text import lines as text_of


def text(shown: Shown) -> str:
    """Every kernel's launch, as text of 80 columns."""
    found = [line for part in shown.parts for line in _lines(part, shown.arch)]
    return "\n".join(found or [shown.why_not("ptx") or "no kernel of a GPU was seen launched"])


def _lines(part: Part, arch: str) -> Iterator[str]:
    report = part.report
    if report is None or report.grid is None or report.block is None:
        yield f"{part.name}: it was not seen launched, so it has no grid"
        return
    made = geometry(
        report.grid,
        report.block,
        arch=arch,
        registers=report.registers,
        static_shared=report.shared_bytes or 0,
        dynamic_shared=report.dynamic_shared_bytes or 0,
        name=part.name,
    )
    yield from text_of(made)
