"""What `ncu --csv` prints: the details page a row a metric, the raw page a row a kernel."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from .ncu import Finding, Kernel, Metric, Report, not_one, three

FIRST = '"ID"'
WIDE = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name")


def read(file: str, text: str) -> Report:
    """Reads either page. Raises AssayError for other tables."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith((FIRST, "ID,"))), None)
    if start is None:
        raise not_one(file, "it has no head that begins with ID")
    rows = list(csv.reader(io.StringIO("\n".join(lines[start:]))))
    head, body = rows[0], [row for row in rows[1:] if row]
    if head[: len(WIDE)] != list(WIDE):
        raise not_one(file, f"its head begins {head[:3]}")
    details = "Metric Name" in head
    for number, row in enumerate(body):
        # A row with a metric ends where the cells of a rule would begin.
        least = head.index("Metric Value") + 1 if details else len(head)
        if not least <= len(row) <= len(head):
            raise not_one(file, f"row {number + 1} has {len(row)} cells, its head {len(head)}")
    if details:
        return Report(file, "details CSV", tuple(_details(head, body)))
    if not body or body[0][0]:
        raise not_one(file, "the second row of a raw page has the units and no ID")
    return Report(file, "raw CSV", tuple(_raw(head, body[0], body[1:])))


def _details(head: list[str], rows: list[list[str]]) -> Iterable[Kernel]:
    by_id: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        cells = {**dict.fromkeys(head, ""), **dict(zip(head, row))}
        by_id.setdefault(cells["ID"], []).append(cells)
    for number, mine in enumerate(by_id.values()):
        sections: dict[str, dict[str, Metric]] = {}
        for cells in mine:
            if name := cells["Metric Name"]:
                metric = Metric(name, cells["Metric Unit"], cells["Metric Value"])
                sections.setdefault(cells["Section Name"], {})[name] = metric
        findings = tuple(_finding(cells) for cells in mine if cells["Rule Description"])
        yield _kernel(number, mine[0], sections, findings)


def _finding(cells: dict[str, str]) -> Finding:
    """Its section is the name within Nsight Compute, `SpeedOfLight`, not the title on the page."""
    speedup = cells["Estimated Speedup"]
    return Finding(
        cells["Section Name"],
        cells["Rule Type"],
        " ".join(cells["Rule Description"].split()),
        cells["Rule Name"],
        float(speedup) if speedup else None,
        cells["Estimated Speedup Type"].lower(),
    )


def _raw(head: list[str], units: list[str], rows: list[list[str]]) -> Iterable[Kernel]:
    place = {name: index for index, name in enumerate(head)}
    about = place["CC"] + 1
    for number, row in enumerate(rows):
        metrics = {
            name: Metric(name, unit, cell)
            for name, unit, cell in zip(head[about:], units[about:], row[about:])
        }
        yield _kernel(number, dict(zip(head[:about], row)), {"": metrics}, ())


def _kernel(
    number: int,
    cells: dict[str, str],
    sections: dict[str, dict[str, Metric]],
    findings: tuple[Finding, ...],
) -> Kernel:
    return Kernel(
        name=cells["Kernel Name"],
        number=number,
        grid=three(cells.get("Grid Size", "")),
        block=three(cells.get("Block Size", "")),
        capability=cells.get("CC", ""),
        sections=sections,
        findings=findings,
    )
