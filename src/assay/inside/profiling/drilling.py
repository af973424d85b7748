"""From a timeline to counters: the kernels that a call spends most time in, and ncu on each.

A kernel is told by the place of its launch within a call, since ncu counts launches of the same
call from its first one on. What ncu then recorded must bear the kernel's name: where it does not,
the calls differ, and its counters are of another kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...errors import AssayError, NotRun
from ..reading.files import read
from ..reading.names import named
from ..reading.ncu import Report
from ..reading.spans import Span
from ..reading.table import work_table
from ..reading.trace import Trace
from . import RANGE, tools

MOST = 3
"""Kernels that are drilled into."""


@dataclass(frozen=True)
class Hot:
    """A kernel of a call, by what all launches of its name take together."""

    name: str
    share: float
    """Of the time of all work of the device."""
    times: int
    """Launches of it in the first call."""
    place: int
    """Of its longest launch, counted from 0 among all launches of kernels in a call."""
    launches: int
    """Of all kernels in that call."""


@dataclass(frozen=True)
class Drilled:
    """A hot kernel, and the page of what ncu recorded at its place."""

    hot: Hot
    page: Path
    why: str = ""
    """Why the page is not of this kernel; empty: it is."""


def hottest(trace: Trace, most: int = MOST) -> tuple[Hot, ...]:
    """The kernels of a recording that take longest together, the longest first."""
    call = _launched(trace)
    table = work_table(trace.spans)
    found = []
    for line in table.lines:
        places = [place for place, span in enumerate(call) if span.name == line.name]
        if line.kind != "kernel" or not places:
            continue
        place = max(places, key=lambda at: call[at].seconds)
        found.append(Hot(line.name, line.share, len(places), place, len(call)))
    return tuple(found[:most])


def _launched(trace: Trace) -> list[Span]:
    """The kernels of the first call that was kept, in the order in which the host launched them."""
    first = min(
        (span for span in trace.of("range") if span.name == RANGE),
        key=lambda span: span.start,
        default=None,
    )
    if first is None:
        return []
    begun = {
        span.link: span.start
        for span in trace.of("call")
        if span.link is not None and first.start <= span.start <= first.end
    }
    mine = [
        (begun[span.link], span.start, span)
        for span in trace.of("kernel")
        if span.link is not None and span.link in begun
    ]
    return [span for *_, span in sorted(mine, key=lambda one: one[:2])]


def drill(
    ncu: str, program: tools.Program, folder: Path, hot: tuple[Hot, ...]
) -> Iterator[Drilled]:
    """Records each at its place. Raises NotRun where ncu can't record, AssayError for a page that
    can't be read."""
    for one in hot:
        page = tools.ncu(ncu, program, folder / f"launch-{one.place}", place=one.place)
        yield Drilled(one, page, _another(page, one))


def _another(page: Path, hot: Hot) -> str:
    found = read(page)
    if not isinstance(found, Report):
        raise AssayError(f"reading {page}: it is no page of Nsight Compute")
    if len(found.kernels) != 1:
        raise NotRun(f"ncu recorded {len(found.kernels)} kernels in place of one: {page}")
    (kernel,) = found.kernels
    if plain(kernel.name) == plain(hot.name):
        return ""
    return (
        f"launch {hot.place + 1} of the call that ncu recorded is {plain(kernel.name)}, not "
        f"{plain(hot.name)}: its calls are not those of the timeline"
    )


def plain(name: str) -> str:
    """A kernel's name without return type, namespaces, template arguments and parameters."""
    text = named(name).split("<")[0].split("(")[0]
    return text.split()[-1].split("::")[-1] if text.split() else name
