"""Nsight Systems' SQLite exports (`nsys export --type sqlite`) as spans.

Written to the documented schema (SQLite Export Schema Reference): tables are made only for what
was recorded, times are nanoseconds. Not tried on a real file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from ...errors import AssayError
from .spans import Span
from .trace import Trace

MAGIC = b"SQLite format 3\x00"
NANOSECOND = 1e-9
COPIES = {
    **{1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD"},
    **{9: "HtoH", 10: "PtoP"},
}
"""CUpti_ActivityMemcpyKind."""
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
TABLES = (
    KERNELS,
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "NVTX_EVENTS",
)
GEOMETRY = (
    *(f"{what}{axis}" for what in ("grid", "block") for axis in "XYZ"),
    *("registersPerThread", "staticSharedMemory", "dynamicSharedMemory"),
)


def read(path: Path) -> Trace:
    """Kernels, copies, fills, calls of the API and NVTX ranges. Raises AssayError for others."""
    try:
        # Read only, and never created: a name that is not there is an error.
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
            base.row_factory = sqlite3.Row
            names = {row[0] for row in base.execute("select name from sqlite_master")}
            if not names & set(TABLES):
                raise AssayError(
                    f"reading {path} as an export of nsys: it has none of {', '.join(TABLES)}"
                )
            spans = tuple(_spans(base, names))
            devices = _devices(base, names)
    except sqlite3.Error as error:
        raise AssayError(f"reading {path} as an export of nsys: {error}") from None
    return Trace(str(path), "nsys", spans, devices)


def _spans(base: sqlite3.Connection, names: set[str]) -> Iterator[Span]:
    texts = dict(base.execute("select id, value from StringIds")) if "StringIds" in names else {}
    rows = {name: [*base.execute(f"select * from {name}")] for name in TABLES if name in names}
    starts = [row["start"] for found in rows.values() for row in found if row["start"] is not None]
    origin = min(starts, default=0)
    for table, found in rows.items():
        for row in found:
            cells = {key: row[key] for key in row.keys()}  # noqa: SIM118 - a Row is no dict
            if cells.get("end") is None or cells.get("start") is None:
                continue  # a mark of NVTX takes no time
            name, kind, facts = _what(table, cells, texts)
            yield Span(
                name=name,
                kind=kind,
                start=(cells["start"] - origin) * NANOSECOND,
                seconds=(cells["end"] - cells["start"]) * NANOSECOND,
                place=_place(cells),
                link=cells.get("correlationId"),
                facts=facts,
            )


def _what(
    table: str, cells: dict[str, Any], texts: dict[int, str]
) -> tuple[str, str, dict[str, Any]]:
    """Name, kind and facts of a row."""
    if table == KERNELS:
        number = cells.get("demangledName") or cells.get("shortName") or -1
        facts = {name: cells[name] for name in GEOMETRY if name in cells}
        return texts.get(number, f"kernel {number}"), "kernel", facts
    if table.endswith("MEMCPY"):
        kind = COPIES.get(cells["copyKind"], f"of kind {cells['copyKind']}")
        return f"Memcpy {kind}", "memcpy", {"bytes": cells["bytes"]}
    if table.endswith("MEMSET"):
        return "Memset", "memset", {"bytes": cells["bytes"]}
    if table.endswith("RUNTIME"):
        return texts.get(cells["nameId"], f"call {cells['nameId']}"), "call", {}
    text = cells.get("text") or texts.get(cells.get("textId") or -1, "")
    return text, "range", {}


def _place(cells: dict[str, Any]) -> str:
    if "streamId" in cells:
        return f"device {cells.get('deviceId')}/stream {cells['streamId']}"
    return f"thread {cells.get('globalTid')}"


def _devices(base: sqlite3.Connection, names: set[str]) -> tuple[str, ...]:
    if "TARGET_INFO_GPU" not in names:
        return ()
    return tuple(row["name"] for row in base.execute("select name from TARGET_INFO_GPU"))
