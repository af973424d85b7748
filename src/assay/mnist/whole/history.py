"""The history of our step: versions named by idea, and what each gained over the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...clock.statistics import ratio
from ..race import Ran

VERSIONS: dict[str, str] = {
    "naive": "naive, no graph",
    "a graph of it": "naive",
    "fused, on tensor cores": "fast, no graph",
    "a graph of that": "fast, one after another",
    "kernels that start early": "fast",
}
"""The idea, and the peer that shows it. Fusing and tensor cores came in one step."""


@dataclass(frozen=True)
class Gain:
    """A version's seconds of a step, and those of the version before over them, by round."""

    idea: str
    seconds: float
    before: str = ""
    low: float = 1.0
    ratio: float = 1.0
    high: float = 1.0


def gains(ran: Sequence[Ran]) -> list[Gain]:
    """Of the versions that raced, in the order of VERSIONS; fewer than two give none."""
    by_name = {r.name: r for r in ran}
    there = [(idea, by_name[name]) for idea, name in VERSIONS.items() if name in by_name]
    if len(there) < 2:
        return []
    made = [Gain(there[0][0], there[0][1].median("total")[1])]
    for (before, old), (idea, new) in pairwise(there):
        found = ratio(new.seconds["total"], new.rounds, old.seconds["total"], old.rounds)
        made.append(Gain(idea, new.median("total")[1], before, *found))
    return made
