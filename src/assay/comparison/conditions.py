"""What must be alike for two times to be compared, and how to be told to compare them anyway."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import AssayError
from ..report.accuracy import precision
from ..timings import ON_GPU
from ..types import Timing
from .model import UNKNOWN, Entry

CONDITIONS: dict[str, Callable[[Entry, Timing], str]] = {
    "card": lambda entry, timing: entry.card,
    "method": lambda entry, timing: "GPU" if timing.method in ON_GPU else timing.method,
    "cache": lambda entry, timing: timing.cache,
    "precision": lambda entry, timing: precision(entry.row) or "undeclared",
    "threads": lambda entry, timing: f"{timing.threads}" if timing.threads else "not told",
}
"""What a time was measured on, with which clock, in which cache state; what was computed."""


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """What `--across` names. Raises AssayError for what is no condition."""
    for name in names:
        if name not in CONDITIONS:
            raise AssayError(f"--across {name}: the conditions are {', '.join(CONDITIONS)}")
    return tuple(names)


def differences(a: Sequence[Entry], b: Sequence[Entry]) -> dict[str, tuple[str, str]]:
    """Conditions under which two sides differ, or one side differs within itself."""
    found = {}
    for name, value in CONDITIONS.items():
        mine, other = (sorted({value(e, e.row.timing) for e in s if e.row.timing}) for s in (a, b))
        if name == "card" and _one_place(a, b):
            continue
        if len(mine) == 1 and mine == other and UNKNOWN not in mine:
            continue
        found[name] = (" and ".join(mine), " and ".join(other))
    return found


def _one_place(a: Sequence[Entry], b: Sequence[Entry]) -> bool:
    """Whether all ran on the same device of the same machine, whatever its name."""
    places = {(e.row.machine, e.row.device) for e in (*a, *b)}
    return len(places) == 1 and all(machine for machine, _ in places)
