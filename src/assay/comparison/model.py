"""What is compared, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ..types import Machine, Row

FASTER, SLOWER, SAME, CANNOT_TELL = "faster", "slower", "same", "cannot tell"
WRONG, REFUSED, NO_NUMBER = "wrong", "not comparable", "no number"
GONE, NEW = "only in A", "only in B"
COMPARED = (FASTER, SLOWER, SAME, CANNOT_TELL)

UNKNOWN = "unknown"


def card(machine: Machine | None, device: str) -> str:
    """What a device of a machine is called; the CPU with its number of cores."""
    if machine is None:
        return UNKNOWN
    if not device.startswith("cuda"):
        return f"{machine.cpu}, {machine.cores} cores"
    index = int(device.partition(":")[2] or 0)
    return machine.gpus[index].name if index < len(machine.gpus) else UNKNOWN


@dataclass(frozen=True)
class Entry:
    """A row, and what it was measured on."""

    row: Row
    card: str
    """`NVIDIA H100 80GB HBM3`, or a CPU and its cores; `unknown` where no line says it."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison. The same case may occur several times, once a process."""

    name: str
    entries: tuple[Entry, ...]


class Pair(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="pair"):
    """One case of one kernel, on both sides. Ratios are B / A: above 1, B takes longer."""

    op: str
    case: str
    label: str
    word: str
    """faster, slower, same, cannot tell; wrong, not comparable, no number, only in A, only in B."""
    reason: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    """95 % interval of the ratio."""
    seen: float | None = None
    """Smallest difference that would have been called 99 times in 100: 0.03 is 3 %."""
    a_seconds: float | None = None
    b_seconds: float | None = None
    """Geometric mean, over processes, of the medians."""
    processes: tuple[int, int] = (0, 0)
    paired: bool = False
    """Whether both were sampled in the same schedules, so that ratios are paired by round."""
    notes: tuple[str, ...] = ()


class Summary(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="comparison"):
    """All pairs in a few numbers."""

    a: str
    b: str
    margin: float
    """Smaller differences are not claimed: 0.03 is 3 %."""
    across: dict[str, tuple[str, str]] = {}
    """Conditions that differ, and were told to be ignored: name to what A and B say."""
    allowed: tuple[str, ...] = ()
    counts: dict[str, int] = {}
    """Pairs by their word."""
    untimed: int = 0
    """Kernels and cases that have no time on either side, and did not fail on B."""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    """Geometric mean of the ratios of these cases, and its 95 % interval."""
    worst: str = ""
    """The pair with the largest ratio."""
    worst_ratio: float | None = None
    exit_code: int = 3


@dataclass(frozen=True)
class Comparison:
    """Everything that was found."""

    pairs: tuple[Pair, ...]
    summary: Summary
