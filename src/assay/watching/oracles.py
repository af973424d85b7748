"""Oracles that outlive a save: the truth of an Op is kept as long as the Op is the same."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field

from ..session import Session
from ..types import Case, Strength
from ..verdict.asking import Conditions, Oracle


@dataclass
class Kept:
    """An oracle process, and what it was asked once for all saves."""

    oracle: Oracle
    core: str
    stack: contextlib.ExitStack
    _strengths: dict[tuple[str, ...], list[Strength]] = field(default_factory=dict)

    def known(self, cases: list[Case]) -> list[Strength] | None:
        """What these cases would notice, if it has been worked out."""
        return self._strengths.get(_labels(cases))

    def strengths(self, cases: list[Case], seed: int) -> list[Strength]:
        """The same, worked out where it was not. Raises AssayError."""
        labels = _labels(cases)
        if labels not in self._strengths:
            self._strengths[labels] = self.oracle.strengths(cases, seed)
        return self._strengths[labels]


class Oracles:
    """One oracle an Op. `of` starts it anew when what decides the Op changed."""

    def __init__(self, session: Session, conditions: Conditions):
        self._session, self._conditions = session, conditions
        self._kept: dict[str, Kept] = {}

    def of(self, op: str, core: str) -> Kept:
        """The oracle of this version of an Op. Raises Stopped once the watch ends."""
        kept = self._kept.get(op)
        if kept is not None and kept.core == core:
            return kept
        if kept is not None:
            self.drop(op)
        stack = contextlib.ExitStack()
        oracle = stack.enter_context(Oracle(self._session, self._conditions, op))
        self._kept[op] = Kept(oracle, core, stack)
        return self._kept[op]

    def drop(self, op: str) -> None:
        """Ends an oracle, which may be hung or gone; the next save gets a new one."""
        kept = self._kept.pop(op, None)
        if kept is not None:  # a process with a GPU takes a while to end, and nobody waits for it
            threading.Thread(target=kept.stack.close).start()


def _labels(cases: list[Case]) -> tuple[str, ...]:
    return tuple(case.label for case in cases)
