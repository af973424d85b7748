"""`assay count`: what a kernel does, exactly, line by line of its source."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from ..cases import parse_values
from ..counting import Counted, counted
from ..errors import NotRun
from ..simt.counts import Access, Line
from ..target import parse

SOURCE_WIDTH = 34
NAME_WIDTH = 40


def run(target: str, variant: str, case: str, arch: str, *, as_json: bool) -> int:
    """Prints the counts; exit code 0, 1 if something went wrong, 3 if it can't be run here."""
    try:
        found = counted(parse(target), variant, parse_values(case) if case else {}, arch)
    except NotRun as reason:
        print(f"assay: not run: {reason}", file=sys.stderr)
        return 3
    if as_json:
        for line in found.counts.lines:
            print(msgspec.json.encode(line).decode())
    else:
        _show(Console(highlight=False), found)
    for fault in found.faults:
        print(f"assay: {fault}", file=sys.stderr)
    return 1 if found.faults else 0


def _show(console: Console, found: Counted) -> None:
    counts = found.counts
    console.print(f"[bold]{found.op}[/bold]  {found.label}  {found.case}", soft_wrap=True)
    launches = "1 launch" if counts.launches == 1 else f"{counts.launches} launches"
    names = ", ".join(map(_brief, found.kernels))
    console.print(
        f"compiled for {found.arch}, run on the CPU; {launches} of {names}", soft_wrap=True
    )
    console.print(
        f"{counts.warp_instructions:,} instructions of warps, "
        f"{counts.active_lanes:.1f} of 32 lanes active"
    )
    mix = ", ".join(f"{name} {number:,}" for name, number in counts.classes.items())
    console.print(f"{mix}\n", soft_wrap=True)
    for kind in counts.kinds:
        console.print(f"  {kind:<16} {_access(counts.access(kind))}", soft_wrap=True)
    file = ""
    for line in counts.lines:
        if line.file != file:
            file = line.file
            console.print(f"\n{file or 'without a line of source'}", markup=False, soft_wrap=True)
        _line(console, line)


def _brief(name: str) -> str:
    """A kernel's name; a mangled one can fill lines."""
    return name if len(name) <= NAME_WIDTH else name[: NAME_WIDTH - 3] + "..."


def _line(console: Console, line: Line) -> None:
    lanes = line.lanes / max(1, line.warps)
    source = _source(line.file, line.line)
    shown = f"{line.line:>5}  {source:<{SOURCE_WIDTH}}  {line.warps:>9,}  {lanes:4.1f} lanes"
    console.print(Text(shown), soft_wrap=True)
    for kind, access in sorted(line.accesses.items()):
        console.print(Text(f"         {kind:<16} {_access(access)}", style="dim"), soft_wrap=True)


def _access(access: Access) -> str:
    parts = [f"{access.requests:,} requests"]
    if access.sectors:
        parts.append(f"{access.sectors:,} sectors (ideal {access.ideal_sectors:,})")
    if access.wavefronts:
        parts.append(f"{access.wavefronts:,} wavefronts (ideal {access.ideal_wavefronts:,})")
    if access.contended:
        parts.append(f"{access.contended:,} rounds on one address")
    return ", ".join(parts)


def _source(file: str, line: int) -> str:
    """A line of source, if its file is still there."""
    path = Path(file)
    if not line or not path.is_file():
        return ""
    lines: list[Any] = path.read_text(errors="replace").splitlines()
    text = lines[line - 1].strip() if line <= len(lines) else ""
    return text if len(text) <= SOURCE_WIDTH else text[: SOURCE_WIDTH - 3] + "..."
