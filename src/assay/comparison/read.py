"""A file, or a kept run, as one side of a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import rows
from ..errors import RowsError
from ..types import Machine, Row
from . import carried, nvbench, pytest_benchmark
from .model import Entry, Side, card

FORMATS = {"pytest-benchmark": pytest_benchmark, "nvbench": nvbench}


def side(name: str, root: Path | None = None) -> Side:
    """What `name` holds: rows as JSON Lines, a kept run (`last`, `last~1`), or the JSON that
    pytest-benchmark or nvbench writes. Raises RowsError."""
    path = rows.find_run(name, root)
    foreign = _foreign(path)
    if foreign is None:
        return of(name, rows.read(path))
    for form in FORMATS.values():
        if form.is_it(foreign):
            return form.load(foreign, path)
    raise RowsError(
        f"reading {path}: it is JSON, but neither rows (one a line) nor what "
        f"{' or '.join(FORMATS)} writes; its keys are {', '.join(map(str, list(foreign)[:8]))}"
    )


def _foreign(path: Path) -> dict[str, Any] | None:
    """The one object that a file holds, if that is no row; None for JSON Lines."""
    try:
        whole = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    return whole if isinstance(whole, dict) and "kind" not in whole else None


def of(name: str, nouns: Iterable[Any]) -> Side:
    """Rows with the cards of the machines that are named among them."""
    found = list(nouns)
    machines = {noun.id: noun for noun in found if isinstance(noun, Machine)}
    entries = [
        Entry(noun, card(machines.get(noun.machine), noun.device))
        for noun in found
        if isinstance(noun, Row)
    ]
    return Side(name, tuple(entries))


def nouns(name: str, root: Path | None = None) -> list[Any]:
    """Machines, rows and strengths of any file that `side` reads."""
    path = rows.find_run(name, root)
    foreign = _foreign(path)
    if foreign is None:
        return list(rows.read(path))
    entries = side(name, root).entries
    return [*carried.machines_of(foreign.get("assay"), path), *(entry.row for entry in entries)]
