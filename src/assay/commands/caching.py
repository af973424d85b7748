"""`assay cache`: what is kept, how large, last used when; how each was built; and clearing it."""

from __future__ import annotations

import datetime
import getpass
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .. import cache
from ..report import units

SHOWN = ("flags", "command", "compiler", "nvrtc", "arch", "torch", "cuda")
"""Parts of a key that are printed, where a build has them."""


def show(match: str, *, clear: bool, log: bool) -> None:
    """Lists the builds whose name holds `match`, prints all about each, or removes them."""
    console = Console(highlight=False)
    if clear:
        console.print(f"{units.count(cache.clear(match), 'build')} removed")
        return
    found = [e for e in cache.entries() if match in e.what or e.key.startswith(match or e.key)]
    if log:
        for entry in found:
            _whole(console, entry)
    elif found:
        console.print(_table(found))
    total = sum(entry.bytes for entry in found)
    console.print(f"{units.count(len(found), 'build')}, {units.size(total)}, in", soft_wrap=True)
    console.print(str(cache.root()), soft_wrap=True)
    for name, folder in others().items():
        state = "" if folder.is_dir() else " (nothing there)"
        console.print(f"{name} keeps its own in {folder}{state}", soft_wrap=True)


def _table(found: list[cache.Entry]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("build", "took", "size", "last used", "key"):
        table.add_column(name, justify="right" if name in ("took", "size") else "left")
    for entry in found:
        used = datetime.datetime.fromtimestamp(entry.used).strftime("%Y-%m-%d %H:%M")
        table.add_row(
            entry.what, units.seconds(entry.seconds), units.size(entry.bytes), used, entry.key[:12]
        )
    return table


def others() -> dict[str, Path]:
    """Where Triton and Inductor keep what they compile; by their own rules, without importing them.

    triton/knobs.py; torch/_inductor/runtime/cache_dir_utils.py.
    """
    home = Path(os.environ.get("TRITON_HOME") or Path.home())
    user = re.sub(r'[\\/:*?"<>|]', "_", getpass.getuser())
    inductor = Path(tempfile.gettempdir()) / f"torchinductor_{user}"
    return {
        "Triton": Path(os.environ.get("TRITON_CACHE_DIR") or home / ".triton" / "cache"),
        "Inductor": Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR") or inductor),
    }


def _whole(console: Console, entry: cache.Entry) -> None:
    """All about one build, as plain text."""
    noted = cache.notes(entry)
    parts: dict[str, Any] = noted.get("parts", {})
    lines = [f"{entry.what}  {entry.key}", f"  built in {units.seconds(entry.seconds)}"]
    for name in SHOWN:
        said = parts.get(name)
        if said:
            text = " ".join(map(str, said)) if isinstance(said, list) else str(said)
            # A compiler's part goes on with the processor that `-march=native` stands for.
            lines.append(f"  {name}: {text.split(' on ')[0]}")
    lines += [f"  source: {path}" for path in parts.get("sources", {})]
    lines.append(f"  files in {entry.place}:")
    for path in sorted(p for p in entry.place.rglob("*") if p.is_file()):
        lines.append(f"    {path.relative_to(entry.place)}  {units.size(path.stat().st_size)}")
    lines.append("  binding:" + (_binding(entry.place) or f" none; {_called(parts)}"))
    lines += ["  log:", *(f"    {line}" for line in str(noted.get("log", "")).splitlines()), ""]
    console.print("\n".join(lines), markup=False, soft_wrap=True)


def _called(parts: dict[str, Any]) -> str:
    """How a build without a binding is called."""
    calls = {"cuda": "its kernels are launched by name", "cpp": "its functions go through ctypes"}
    return calls.get(str(parts.get("way")), "it needs none")


def _binding(place: Path) -> str:
    """The pybind11 module that was generated below the source, indented; or empty."""
    main = place / "main.cpp"
    text = main.read_text() if main.is_file() else ""
    start = text.rfind("PYBIND11_MODULE")
    return "\n" + "\n".join(f"    {x}" for x in text[start:].splitlines()) if start >= 0 else ""
