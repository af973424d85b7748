"""Which barriers a kernel needs: each is left out in turn, and what is then seen to go wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from .ptx import Function, Instruction, Place
from .results import place_of

ORDERING = re.compile(
    r"bar\.(?:cta\.)?sync|barrier\.(?:cta\.)?sync|bar\.warp\.sync|cp\.async\.wait|membar|fence\."
)
"""Instructions that only order others, so that a kernel without one still does all its work.

(`bar.red` also gives a value; an mbarrier's wait is a loop.)
"""


@dataclass(frozen=True)
class Synchronisation:
    """A barrier, a wait or a fence."""

    number: int
    """Among those of its kernel."""
    form: str
    place: Place | None

    def __str__(self) -> str:
        return f"{self.form} at {self.place}" if self.place else self.form


def _is_ordering(item: object) -> bool:
    return isinstance(item, Instruction) and bool(ORDERING.match(item.form))


def synchronisations(function: Function) -> tuple[Synchronisation, ...]:
    """Those of a kernel whose calls are inlined."""
    found = [item for item in function.body if _is_ordering(item)]
    return tuple(
        Synchronisation(number, item.form, place_of(item.places))
        for number, item in enumerate(found)
        if isinstance(item, Instruction)
    )


def without(function: Function, number: int) -> Function:
    """The kernel with that one left out."""
    at = [index for index, item in enumerate(function.body) if _is_ordering(item)][number]
    return replace(function, body=function.body[:at] + function.body[at + 1 :])
