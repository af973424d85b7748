"""The launches of one call as experiments change them: PTX, grid, block, shared memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ...simt.adapters import Compiled, Size
from .entry import NotTried, Rule, rewritten


@dataclass(frozen=True)
class Card:
    """What launch experiments need to know of a GPU."""

    multiprocessors: int
    shared_bytes: int
    """That the blocks of a multiprocessor share."""
    block_shared_bytes: int
    """That one block may have."""


RESERVED = 1024
"""Bytes of shared memory that each block takes besides its own, from sm_80 on."""


@dataclass(frozen=True)
class Launched:
    """One launch."""

    compiled: Compiled
    grid: Size
    block: Size
    args: tuple[Any, ...]
    """As adapters hand them over: one for each parameter of the entry."""
    shared: int
    static_shared: int = 0
    per_sm: int = 0
    """Blocks that a multiprocessor holds at a time."""
    registers: int = 0
    """Of a thread; 0: not known."""

    @property
    def blocks(self) -> int:
        return math.prod(self.grid)

    @property
    def threads(self) -> int:
        return math.prod(self.block)

    def with_ptx(self, ptx: str) -> Launched:
        return replace(self, compiled=replace(self.compiled, ptx=ptx))


@dataclass(frozen=True)
class Changed:
    """The launches of an experiment."""

    launches: tuple[Launched, ...]
    said: str
    """What was changed, in numbers."""
    work: float = 1.0
    """Times the work of a call that these do."""
    most: float = math.inf
    """No larger gain can be seen."""


def ruled(launches: tuple[Launched, ...], rule: Rule, what: str) -> Changed:
    """Every kernel rewritten by a rule. Raises NotTried if nothing of any changes."""
    made, total = [], 0
    for one in launches:
        ptx, changed = rewritten(one.compiled.ptx, one.compiled.name, rule)
        made.append(one.with_ptx(ptx))
        total += changed
    if not total:
        raise NotTried(f"its code has no {what}")
    return Changed(tuple(made), f"{total} in the code")


def largest(launches: tuple[Launched, ...]) -> int:
    """The place of the launch with most threads."""
    return max(range(len(launches)), key=lambda i: launches[i].blocks * launches[i].threads)


def only(launches: tuple[Launched, ...]) -> Launched:
    """The one launch. Raises NotTried if there are several."""
    if len(launches) > 1:
        raise NotTried(f"a call is {len(launches)} launches, whose work can't be set apart")
    return launches[0]
