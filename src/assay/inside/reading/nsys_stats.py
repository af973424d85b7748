"""Tables that `nsys stats` and `nsys profile --stats=true` print, as text or CSV: sums by name.

Their form is that of pages of Nsight Systems 2023.1 to 2026.3 that others published.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...errors import AssayError

TITLE = re.compile(r"^\s*\*\* (?P<title>.+?) \((?P<report>\w+)\):\s*$")
BEGUN = re.compile(r"(?:reports[/\\](?P<file>\w+)\.py\]|Executing '(?P<name>\w+)' stats report)")
SKIPPED = re.compile(r"^\s*SKIPPED: (?P<why>.+?)\s*$")
DASHES = re.compile(r"^\s*-+( +-+)+\s*$")
TIME = re.compile(r"Total Time \((?P<unit>ns|us|ms|s)\)")
SIZE = "Total (MB)"
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
CALLS = ("Instances", "Num Calls", "Count", "Calls")
NAMES = ("Name", "Operation", "Range")
KINDS = {
    **{"cuda_gpu_kern_sum": "kernel", "gpukernsum": "kernel"},
    **{"cuda_gpu_mem_time_sum": "memory", "gpumemtimesum": "memory"},
    **{"cuda_gpu_mem_size_sum": "size", "gpumemsizesum": "size"},
    **{"cuda_api_sum": "call", "cudaapisum": "call"},
    **{"osrt_sum": "system", "osrtsum": "system"},
    **{"nvtx_sum": "range", "nvtxsum": "range", "nvtx_pushpop_sum": "range"},
}
"""What the tables of a report sum up, by the names of now and of before 2023."""


@dataclass(frozen=True)
class Sum:
    """All of one name."""

    name: str
    calls: int
    seconds: float | None = None
    least_seconds: float | None = None
    most_seconds: float | None = None
    bytes: float | None = None
    """Of copies and fills, in the table by size."""


@dataclass(frozen=True)
class Sums:
    """One table, as it was printed."""

    report: str
    """`cuda_gpu_kern_sum`; empty: the file does not say."""
    kind: str
    """`kernel`, `memory`, `size`, `call`, `system`, `range`; empty: none of these."""
    rows: tuple[Sum, ...]


@dataclass(frozen=True)
class Stats:
    """One file."""

    file: str
    tables: tuple[Sums, ...]
    skipped: tuple[tuple[str, str], ...]
    """(report, reason in nsys' words) of those that had nothing to say."""

    def of(self, kind: str) -> tuple[Sum, ...]:
        """The rows of all tables of a kind."""
        return tuple(row for one in self.tables if one.kind == kind for row in one.rows)


def is_one(text: str) -> bool:
    """Whether it has a table of sums, or says that there is none."""
    return any(
        TITLE.match(line) or BEGUN.search(line) or _csv_head(line) or _words(line)
        for line in text.splitlines()
    )


def read(file: str, text: str) -> Stats:
    """Reads every table of sums in it. Raises AssayError for a row that can't be read, or none."""
    tables, skipped = list[Sums](), list[tuple[str, str]]()
    report, lines = "", text.splitlines()
    for number, line in enumerate(lines):
        if found := TITLE.match(line):
            report = found["report"]
        elif found := BEGUN.search(line):
            report = found["file"] or found["name"]
        elif found := SKIPPED.match(line):
            skipped.append((report, found["why"]))
        elif cells := _csv_head(line):
            rows = [_cells(one) for one in _until_blank(lines[number + 1 :])]
            tables.append(_table(file, report, cells, rows, number))
        elif DASHES.match(line) and number and _words(lines[number - 1]):
            ends = [(found.start(), found.end()) for found in re.finditer("-+", line)]
            head = _cut(lines[number - 1], ends)
            rows = [_cut(one, ends) for one in _until_blank(lines[number + 1 :])]
            tables.append(_table(file, report, head, rows, number))
    if not tables and not skipped:
        raise AssayError(f"reading {file} as the output of nsys stats: it holds no table of sums")
    return Stats(file, tuple(tables), tuple(skipped))


def _cells(line: str) -> list[str]:
    return next(csv.reader([line]), [])


def _csv_head(line: str) -> list[str]:
    """The columns, if a line has those of a table of sums; else empty."""
    cells = [cell.strip() for cell in _cells(line)] if "Total" in line else []
    named = bool(cells) and cells[-1] in NAMES
    return cells if named and any(TIME.search(c) or c == SIZE for c in cells) else []


def _words(line: str) -> bool:
    """The same of a line of text."""
    return (
        line.split()[-1:] != []
        and line.split()[-1] in NAMES
        and bool(TIME.search(line) or SIZE in line)
    )


def _until_blank(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if not line.strip():
            return
        yield line


def _cut(line: str, ends: list[tuple[int, int]]) -> list[str]:
    """Cells below the dashes; the last one to the end of the line."""
    cells = [line[start:end].strip() for start, end in ends[:-1]]
    return [*cells, line[ends[-1][0] :].strip()]


def _table(file: str, report: str, head: list[str], rows: list[list[str]], number: int) -> Sums:
    columns = [cell.strip() for cell in head]
    kind = KINDS.get(report, "") if report else _kind(columns)
    made = []
    for below, row in enumerate(rows):
        cells = dict(zip(columns, row, strict=False))
        try:
            if len(row) != len(columns):
                raise ValueError(f"{len(row)} cells, its head has {len(columns)}")
            made.append(_sum(cells))
        except (StopIteration, ValueError) as error:
            raise AssayError(
                f"reading {file} as the output of nsys stats: line {number + below + 2} is no row "
                f"of the table above it ({error}); was the file cut or edited?"
            ) from None
    return Sums(report, kind, tuple(made))


def _kind(columns: list[str]) -> str:
    """Of a bare CSV, by its columns; calls of CUDA and of the system look the same."""
    if SIZE in columns:
        return "size"
    if "Operation" in columns:
        return "memory"
    if "Range" in columns:
        return "range"
    return "kernel" if "Instances" in columns else ""


def _sum(cells: dict[str, str]) -> Sum:
    name = next(cells[one] for one in NAMES if one in cells)
    calls = next(_number(cells[one]) for one in CALLS if one in cells)
    if SIZE in cells:
        return Sum(name, int(calls), bytes=1e6 * _number(cells[SIZE]))
    seconds, unit = next(
        (_number(cell), UNITS[found["unit"]])
        for column, cell in cells.items()
        if (found := TIME.search(column))
    )
    ends = [
        unit * _number(next(cell for column, cell in cells.items() if column.startswith(which)))
        for which in ("Min", "Max")
    ]
    return Sum(name, int(calls), unit * seconds, *ends)


def _number(text: str) -> float:
    """`24,472,143` as well as `24472143`."""
    return float(text.replace(",", ""))
