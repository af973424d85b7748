"""Sums of Nsight Systems as lines: device work as one table that adds up, then calls and ranges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from . import table
from .nsys_stats import KINDS, Stats, Sum

NAME = 43
TITLES = {"call": "call of CUDA", "system": "call of the system", "range": "range"}


def text(found: Stats, rows: int = 10) -> Iterator[str]:
    """As lines of 80 columns. rows: most lines of a table.

    nsys prints shares within kernels and within copies; here they are of all work of the device.
    Times of ranges hold those of ranges within them, so theirs do not add up and have no share.
    """
    number = len(found.tables)
    yield f"{found.file}: sums of Nsight Systems, {number} table{'' if number == 1 else 's'}"
    work = [_line(one, "kernel") for one in found.of("kernel")]
    work += [_line(one, "memcpy") for one in found.of("memory")]
    if work:
        yield ""
        yield from table.text(_table(work), rows)
    sizes = {one.name: one.bytes for one in found.of("size") if one.bytes is not None}
    for one in found.of("memory"):
        if one.name in sizes and one.seconds:
            rate = sizes[one.name] / one.seconds
            size = f"{sizes[one.name] / 1e6:,.3f} MB in {one.calls:,}, {rate / 1e9:,.1f} GB/s"
            yield f"{one.name[:NAME]}: {size}"
    for kind, title in TITLES.items():
        yield from _sums(title, found.of(kind), rows)
    unread = [one for one in found.tables if not one.kind]
    for sums in unread:
        name = sums.report or "one that its file does not name"
        yield f"not shown: table {name}, {len(sums.rows)} rows"
    for report, reason in found.skipped:
        if report in KINDS:
            yield f"no {report}: {reason}"


def _line(one: Sum, kind: str) -> table.Line:
    seconds, least, most = (one.seconds, one.least_seconds, one.most_seconds)
    assert seconds is not None
    assert least is not None
    assert most is not None
    return table.Line(one.name, kind, one.calls, seconds, least, most, 0.0)


def _table(lines: list[table.Line]) -> table.Table:
    total = sum(line.seconds for line in lines)
    shares = [replace(line, share=line.seconds / total) for line in lines if total]
    shares.sort(key=lambda line: (-line.seconds, line.name))
    return table.Table(tuple(shares), total, total)


def _sums(title: str, sums: tuple[Sum, ...], rows: int) -> Iterator[str]:
    if not sums:
        return
    yield ""
    yield f"{title:<{NAME}} {'calls':>8} {'total us':>12} {'each us':>12}"
    for one in sorted(sums, key=lambda s: -(s.seconds or 0.0))[:rows]:
        seconds = one.seconds or 0.0
        name = one.name if len(one.name) <= NAME else f"{one.name[: NAME - 3]}..."
        each = seconds / max(1, one.calls)
        yield f"{name:<{NAME}} {one.calls:>8,} {seconds * 1e6:>12,.1f} {each * 1e6:>12,.1f}"
    if len(sums) > rows:
        yield f"and {len(sums) - rows} more"
