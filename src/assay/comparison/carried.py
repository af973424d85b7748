"""What a foreign file carries of a row beside the samples, and rows of files that carry none."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from .. import rows
from ..clock.statistics import interval, steadiness
from ..errors import RowsError
from ..report.accuracy import precision
from ..types import NO_EVIDENCE, Case, Machine, Row, Scalar, Timing, replace

LOST = (
    "rows without a time (failures and what was not run)",
    "verdicts (but for the word), builds, counters",
)
"""What neither foreign format holds."""
UNJUDGED = "imported: Assay judged none of it"


def exported(row: Row) -> tuple[dict[str, Any], tuple[float, ...]]:
    """A timed row without samples, as an object; and its samples."""
    assert row.timing
    bare = replace(
        row,
        precision=precision(row),
        verdict=None,
        build=None,
        counters=None,
        timing=replace(row.timing, samples=()),
    )
    return msgspec.json.decode(rows.encode(bare)), row.timing.samples


def imported(carried: Any, samples: Sequence[float], where: Path) -> Row:
    """The row that `exported` made an object of. Raises RowsError if somebody changed it."""
    row = rows.decode(msgspec.json.encode(carried), Row, f"what Assay left in {where}")
    if row.timing is None or len(row.timing.rounds) != len(samples):
        raise RowsError(f"reading {where}: {row.label} has other samples than Assay left in it")
    return replace(row, timing=replace(row.timing, samples=tuple(samples)))


def machines(nouns: Sequence[Any]) -> list[Any]:
    """Machines as objects."""
    found = [noun for noun in nouns if isinstance(noun, Machine)]
    return [msgspec.json.decode(rows.encode(noun)) for noun in found]


def machines_of(raw: Any, where: Path) -> list[Machine]:
    """The machines that Assay left in a foreign file, if it wrote it."""
    listed = raw.get("machines", []) if isinstance(raw, dict) else []
    return [rows.decode(msgspec.json.encode(one), Machine, str(where)) for one in listed]


def digest(path: Path) -> str:
    """What tells one file's samples from another's."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:10]


def unjudged(
    *,
    op: str,
    variant: str,
    case: dict[str, Scalar],
    device: str,
    schedule: str,
    samples: Sequence[float],
    method: str,
    cache: str,
    calls: int = 1,
    no_samples: str = "",
) -> Row:
    """A row of a program that is not Assay: whether it was right, nobody knows."""
    row = Row(
        op=op,
        variant=variant,
        way="library",
        case=Case(case),
        device=device,
        outcome=NO_EVIDENCE,
        word="check too weak",
        reason=UNJUDGED,
        not_timed=no_samples,
    )
    if no_samples or not samples:
        return row
    low, middle, high = interval(samples)
    timing = Timing(
        samples=tuple(samples),
        rounds=tuple(range(len(samples))),
        schedule=schedule,
        method=method,
        cache=cache,
        calls=calls,
        median=middle,
        low=low,
        high=high,
        steady=steadiness(samples),
    )
    return replace(row, timing=timing)


def scalars(named: dict[str, Any]) -> dict[str, Scalar]:
    """Parameters as a case holds them: what is no number and no text, as text."""
    return {k: v if isinstance(v, (int, float, bool, str)) else str(v) for k, v in named.items()}
