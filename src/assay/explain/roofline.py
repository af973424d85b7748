"""A roofline: how fast a call computes beside what the ceilings of the card allow it.

    FLOP/s  <=  min(arithmetic, FLOP a byte x bytes a second)

A call's FLOP are those that its Op states, its bytes those that must move (Williams, Waterman and
Patterson 2009, Roofline: an insightful visual performance model). Its second point has the bytes
that it asks of L2, as counted: the further left of the first, the more of them are in vain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import AssayError
from . import costs
from .cards import Card, Ceiling
from .model import Explanation, Facts

FMA = "float32 FMA"


@dataclass(frozen=True)
class Point:
    """One call."""

    label: str
    intensity: float
    """FLOP a byte that must move."""
    rate: float
    """FLOP a second."""
    measured: bool
    """False: the time is the model's."""
    limit: float | None
    """FLOP a second that DRAM and the arithmetic of its precision allow at that intensity."""
    bound: str
    """The ceiling that gives `limit`: `DRAM`, `float32 FMA`. Empty: no ceiling of arithmetic."""
    asked: float | None = None
    """FLOP a byte asked of L2, as counted; None: not counted."""


@dataclass(frozen=True)
class Roofline:
    """One card's ceilings, and calls below them."""

    card: Card
    ceilings: tuple[Ceiling, ...]
    points: tuple[Point, ...]
    absent: tuple[str, ...]
    """Calls that have no point, each with the reason."""


def roofline(found: Sequence[Explanation]) -> Roofline:
    """Of explanations on one card. Raises AssayError where they are of several, or of none."""
    cards = {one.facts.card for one in found}
    if len(cards) != 1:
        names = ", ".join(sorted(card.name for card in cards)) or "none"
        raise AssayError(
            f"drawing a roofline: it is of one card, and these rows are of {len(cards)} ({names}); "
            "explain one run of one device"
        )
    (card,) = cards
    points, absent = [], []
    for one in found:
        made = point(one)
        if isinstance(made, Point):
            points.append(made)
        else:
            absent.append(f"{_label(one.facts)}: {made}")
    shown = dict.fromkeys([FMA, *(_kind(one.facts) for one in found)])
    ceilings = tuple(one for one in card.arithmetic if one.name in shown)
    return Roofline(card, ceilings, tuple(points), tuple(absent))


def point(found: Explanation) -> Point | str:
    """Where a call is; else why it is nowhere."""
    facts = found.facts
    if not found.costs:
        return "it was not timed on a GPU"
    if not facts.flops:
        return "its Op states no FLOP" if facts.flops is None else "it computes nothing (0 FLOP)"
    if not facts.must_bytes:
        return "the bytes that must move are not known"
    seconds = facts.seconds or costs.seconds(facts)
    intensity = facts.flops / facts.must_bytes
    limit, bound = _limit(facts, intensity)
    return Point(
        label=_label(facts),
        intensity=intensity,
        rate=facts.flops / seconds,
        measured=facts.seconds is not None,
        limit=limit,
        bound=bound,
        asked=_asked(facts),
    )


def _limit(facts: Facts, intensity: float) -> tuple[float | None, str]:
    """(FLOP/s, name) of the lower one of both ceilings."""
    memory = intensity * facts.card.dram
    kind = _kind(facts)
    peak = next((one for one in facts.card.arithmetic if one.name == kind), None)
    if peak is None:
        return None, ""
    return (peak.rate, peak.name) if peak.rate < memory else (memory, "DRAM")


def _asked(facts: Facts) -> float | None:
    """Sectors of global memory that were counted have 32 bytes each."""
    if facts.counts is None or not facts.flops:
        return None
    counts = facts.counts
    wide = [k for k in counts.kinds if k.split()[0] in ("global", "generic")]
    sectors = sum(counts.access(k).sectors for k in wide)
    return facts.flops / (costs.SECTOR * sectors) if sectors else None


def _kind(facts: Facts) -> str:
    """The ceiling of a precision, as `assay roofs` calls it."""
    kind = facts.precision or facts.dtype
    return FMA if kind in ("", "float32") else f"{kind} matrix"


def _label(facts: Facts) -> str:
    return "  ".join(part for part in (facts.op, facts.label, facts.case) if part)
