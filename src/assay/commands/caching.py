"""`assay cache`: what is kept, how large, last used when; and clearing it."""

from __future__ import annotations

import datetime

from rich.console import Console
from rich.table import Table

from .. import cache
from ..report import units


def show(match: str, *, clear: bool) -> None:
    """Lists the builds whose name holds `match`, or removes them."""
    console = Console(highlight=False)
    if clear:
        console.print(f"{units.count(cache.clear(match), 'build')} removed")
        return
    found = [e for e in cache.entries() if match in e.what or e.key.startswith(match or e.key)]
    table = Table(box=None, pad_edge=False)
    for name in ("build", "took", "size", "last used", "key"):
        table.add_column(name, justify="right" if name in ("took", "size") else "left")
    for entry in found:
        used = datetime.datetime.fromtimestamp(entry.used).strftime("%Y-%m-%d %H:%M")
        table.add_row(
            entry.what, units.seconds(entry.seconds), units.size(entry.bytes), used, entry.key[:12]
        )
    if found:
        console.print(table)
    total = sum(entry.bytes for entry in found)
    console.print(f"{units.count(len(found), 'build')}, {units.size(total)}, in", soft_wrap=True)
    console.print(str(cache.root()), soft_wrap=True)
