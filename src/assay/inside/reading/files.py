"""A file of a peer, whatever it is: told by its content, read, and said in a few lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from ...errors import AssayError
from . import (
    names,
    ncu_csv,
    ncu_rep,
    ncu_text,
    nsys,
    nsys_stats,
    nsys_sums,
    operators,
    recorded,
    table,
    timeline,
)
from .ncu import Kernel, Report
from .nsys_stats import Stats
from .trace import GZIP, Trace, read_trace

NAME = 76
WIDTH = 80
PERCENT = "avg.pct_of_peak_sustained_"
SHOWN = (
    ("duration", "Duration", "gpu__time_duration.sum", 1e6, "us"),
    ("compute", "Compute (SM) Throughput", f"sm__throughput.{PERCENT}elapsed", 1, "%"),
    ("memory", "Memory Throughput", f"gpu__compute_memory_throughput.{PERCENT}elapsed", 1, "%"),
    ("DRAM", "DRAM Throughput", f"gpu__dram_throughput.{PERCENT}elapsed", 1, "%"),
    ("occupancy", "Achieved Occupancy", f"sm__warps_active.{PERCENT}active", 1, "%"),
)
"""What is said of a kernel: its title on the page, its name in reports, factor, unit."""
JSON = re.compile(rb"\s*(\{|\[\s*[{\]])")
"""A page of ncu may begin with `[492] python`."""


def read(path: Path) -> Trace | Report | Stats:
    """A Chrome trace, a page or report of Nsight Compute, an export or tables of Nsight Systems.

    Raises AssayError for a file that is none of them, NotRun where a package is missing.
    """
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except OSError as error:
        raise AssayError(f"reading {path}: {error.strerror}") from None
    if start.startswith(nsys.MAGIC):
        return nsys.read(path)
    if path.suffix == ".ncu-rep":
        return ncu_rep.read(path)
    if start.startswith(GZIP) or JSON.match(start):
        return read_trace(path)
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        raise AssayError(
            f"reading {path}: it is no Chrome trace, page of ncu, .ncu-rep, and no export or table "
            "of nsys"
        ) from None
    if nsys_stats.is_one(text):
        return nsys_stats.read(str(path), text)
    if any(line.startswith((ncu_csv.FIRST, "ID,")) for line in text.splitlines()):
        return ncu_csv.read(str(path), text)
    return ncu_text.read(str(path), text)


def summary(path: Path, rows: int = 10) -> Iterator[str]:
    """What a file says, as lines of 80 columns: what `assay profile --read FILE` prints.

    rows: most lines of a table. Raises what `read` raises.
    """
    found = read(path)
    if isinstance(found, Trace):
        yield from _trace(found, rows)
    elif isinstance(found, Stats):
        yield from nsys_sums.text(found, rows)
    else:
        yield from _report(found, rows)


def _trace(trace: Trace, rows: int) -> Iterator[str]:
    on = f" on {', '.join(trace.devices)}" if trace.devices else ""
    yield f"{trace.file}: recorded by {trace.tool}{on}"
    yield from timeline.text(timeline.timeline(trace))
    yield ""
    yield from table.text(table.work_table(trace.spans), rows)
    for title, kinds in (("operator", ("operator",)), ("range", ("range",))):
        made = operators.operators(trace, kinds)
        if made:
            yield ""
            yield from operators.text(made, rows, title)


def _report(report: Report, rows: int) -> Iterator[str]:
    yield f"{report.file}: {report.form} of Nsight Compute, {_kernels(len(report.kernels))}"
    for kernel in report.kernels[:rows]:
        yield ""
        name = names.named(kernel.name)
        yield name if len(name) <= NAME else f"{name[: NAME - 3]}..."
        decoded = names.decode(kernel.name)
        named = [f"by its name: {decoded.text}"] if decoded else []
        for said in (*named, ", ".join(_figures(kernel)), *_geometry(kernel)):
            yield from textwrap.wrap(f"  {said}", WIDTH, subsequent_indent="    ")
        yield from _findings(kernel)
    if len(report.kernels) > rows:
        yield f"\nand {_kernels(len(report.kernels) - rows)} more"


def _kernels(number: int) -> str:
    return f"{number:,} kernel{'' if number == 1 else 's'}"


def _figures(kernel: Kernel) -> Iterator[str]:
    for what, title, name, factor, unit in SHOWN:
        value = next((v for v in map(kernel.value, (title, name)) if v is not None), None)
        if value is not None:
            yield f"{what} {value * factor:.2f} {unit}"


def _geometry(kernel: Kernel) -> Iterator[str]:
    try:
        found = recorded.geometry_of(kernel)
    except AssayError as error:
        yield str(error)
        return
    held = found.occupancy
    if held is None:
        yield found.why
        return
    limited = f", limited by {' and '.join(held.limiters)}" if held.limiters else ""
    waves = f", {found.waves.number:.2f} waves" if found.waves else ""
    yield f"by arithmetic: occupancy {held.fraction:.2%}{limited}{waves}"
    for pair in recorded.compared(kernel, found):
        if not pair.same:
            yield f"differs: {pair.what} is {pair.computed:g}, recorded {pair.recorded:g}"


def _findings(kernel: Kernel) -> Iterator[str]:
    """Rules by the speed-up that they estimate, the largest first; those without one are left."""
    said = [f for f in kernel.findings if f.speedup_percent is not None]
    for finding in sorted(said, key=lambda f: -(f.speedup_percent or 0))[:3]:
        kind = f" {finding.speedup_kind}" if finding.speedup_kind else ""
        text = finding.text if len(finding.text) <= 50 else f"{finding.text[:47]}..."
        yield f"  rule, {finding.speedup_percent:g} %{kind}: {text}"
