"""Operators of a trace: their own and whole time on the CPU, and the device work that they started.

As torch's `key_averages`: an operator's own time is what none of the operators and CUDA calls
within it took, and the device's time is that of the work that it started itself; whole times hold
those of everything within. An operator within one of its name is not counted again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .spans import WORK, Nested, nested
from .trace import Trace

NAME = 29


@dataclass(frozen=True)
class Operator:
    """All calls of one name."""

    name: str
    calls: int
    own_seconds: float
    seconds: float
    device_own_seconds: float
    device_seconds: float


@dataclass
class _Sum:
    calls: int = 0
    own: float = 0.0
    whole: float = 0.0
    device_own: float = 0.0
    device: float = 0.0


def operators(trace: Trace, kinds: tuple[str, ...] = ("operator",)) -> tuple[Operator, ...]:
    """Operators by name, the longest own time first. kinds: `range` for the user's ranges."""
    started: dict[int | None, float] = {}
    for span in trace.of(*WORK):
        started[span.owner] = started.get(span.owner, 0.0) + span.seconds
    sums: dict[str, _Sum] = {}
    for entry in nested(trace.of("operator", "range", "call")):
        _add(sums, entry, kinds, started)
    found = [
        Operator(name, s.calls, s.own, s.whole, s.device_own, s.device) for name, s in sums.items()
    ]
    return tuple(sorted(found, key=lambda op: (-op.own_seconds, op.name)))


def _add(
    sums: dict[str, _Sum], entry: Nested, kinds: tuple[str, ...], started: dict[int | None, float]
) -> None:
    span = entry.span
    device = started.get(span.owner, 0.0) if span.kind != "call" and span.owner else 0.0
    for name in {outer.name for outer in entry.within if outer.kind in kinds} - {span.name}:
        sums.setdefault(name, _Sum()).device += device
    if span.kind not in kinds:
        return
    of = sums.setdefault(span.name, _Sum())
    of.own += entry.own_seconds
    of.device_own += device
    of.device += device
    if not entry.again:
        of.calls += 1
        of.whole += span.seconds


def text(found: tuple[Operator, ...], rows: int = 10, title: str = "operator") -> Iterator[str]:
    """As lines of 80 columns, times in microseconds."""
    columns = ("own us", "whole us", "own GPU", "all GPU")
    yield f"{title:<{NAME}} {'calls':>6}{''.join(f'{c:>11}' for c in columns)}"
    for op in found[:rows]:
        name = op.name if len(op.name) <= NAME else f"{op.name[: NAME - 3]}..."
        times = (op.own_seconds, op.seconds, op.device_own_seconds, op.device_seconds)
        yield f"{name:<{NAME}} {op.calls:>6,}{''.join(f'{t * 1e6:>11,.1f}' for t in times)}"


def inner(trace: Trace, name: str) -> tuple[str, ...]:
    """Operators that calls of an operator make themselves, in the order of their first call."""
    found = [
        entry.span.name
        for entry in nested(trace.of("operator"))
        if entry.within and entry.within[-1].name == name
    ]
    return tuple(dict.fromkeys(found))
