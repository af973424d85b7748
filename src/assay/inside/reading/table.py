"""What a device was busy with, kernel by kernel, as shares that add up to 100 %."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .spans import WORK, Span, covered_seconds

NAME = 43
HUNDREDTHS = 10_000
"""Of a percent, in all."""


@dataclass(frozen=True)
class Line:
    """All work of one name."""

    name: str
    kind: str
    calls: int
    seconds: float
    least_seconds: float
    most_seconds: float
    share: float
    """Of the seconds of all work. The shares of a table add up to 1."""


@dataclass(frozen=True)
class Table:
    """Work by name, the longest first."""

    lines: tuple[Line, ...]
    seconds: float
    """Of all work: what ran side by side counts twice."""
    busy_seconds: float
    """How long at least one of them ran."""

    @property
    def calls(self) -> int:
        return sum(line.calls for line in self.lines)


def work_table(spans: Iterable[Span]) -> Table:
    """The table of all kernels, copies and fills of memory among these spans.

    Only work of a device counts. Ranges that torch.profiler repeats on the device (`ProfilerStep*`,
    record_function, NVTX) span kernels and the gaps between them: adding one up beside what it
    spans gave the 751.70 % that torch's own table once printed.
    """
    work = [span for span in spans if span.kind in WORK]
    total = sum(span.seconds for span in work)
    by_name: dict[tuple[str, str], list[float]] = {}
    for span in work:
        by_name.setdefault((span.name, span.kind), []).append(span.seconds)
    lines = [
        Line(name, kind, len(each), sum(each), min(each), max(each), sum(each) / total)
        for (name, kind), each in by_name.items()
        if total
    ]
    lines.sort(key=lambda line: (-line.seconds, line.name))
    return Table(tuple(lines), total, min(total, covered_seconds(work)))


def first(table: Table, rows: int) -> tuple[Line, ...]:
    """The longest so many, and one line for all others, so that it still adds up."""
    rest = table.lines[rows:]
    if len(rest) < 2:
        return table.lines
    other = Line(
        f"{len(rest)} others",
        "",
        sum(line.calls for line in rest),
        sum(line.seconds for line in rest),
        min(line.least_seconds for line in rest),
        max(line.most_seconds for line in rest),
        sum(line.share for line in rest),
    )
    return (*table.lines[:rows], other)


def percents(lines: Sequence[Line]) -> list[str]:
    """Shares as printed: rounded to 0.01 % so that what is printed adds up to 100.00 %.

    The largest remainders are rounded up (Hamilton's method): none is off by 0.01 % or more.
    """
    exact = [line.share * HUNDREDTHS for line in lines]
    made = [int(value) for value in exact]
    missing = round(sum(exact)) - sum(made)
    order = sorted(range(len(exact)), key=lambda i: made[i] - exact[i])
    for index in order[:missing]:
        made[index] += 1
    return [f"{value / 100:.2f}" for value in made]


def text(table: Table, rows: int = 10) -> Iterator[str]:
    """As lines of 80 columns."""
    shown = first(table, rows)
    if not shown:
        yield "no work of a GPU was recorded: a profile of the CPU alone"
        return
    yield f"{'device work':<{NAME}} {'share':>7} {'calls':>6} {'total us':>10} {'each us':>8}"
    for line, percent in zip(shown, percents(shown)):
        each = line.seconds / line.calls
        yield (
            f"{_brief(line.name):<{NAME}} {percent:>7} {line.calls:>6,} "
            f"{line.seconds * 1e6:>10,.1f} {each * 1e6:>8,.1f}"
        )
    yield f"{'all':<{NAME}} {'100.00':>7} {table.calls:>6,} {table.seconds * 1e6:>10,.1f}"
    twice = table.seconds - table.busy_seconds
    if twice > 1e-9:
        yield f"of which {twice * 1e6:,.1f} us ran beside other work"


def _brief(name: str) -> str:
    name = name.removeprefix("void ")
    return name if len(name) <= NAME else f"{name[: NAME - 3]}..."
