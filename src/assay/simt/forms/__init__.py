"""The instruction set: one row a form (table.py), grouped by what the forms do."""

from __future__ import annotations

import importlib
from functools import lru_cache

from . import integer
from .table import Action, Lane, Match, Table, Values

FILES = (
    "move",
    "integer",
    "floating",
    "half",
    "convert",
    "compare",
    "memory",
    "asynchronous",
    "atomic",
    "control",
    "warp",
    "tensor",
)


@lru_cache
def table() -> Table:
    """Every form that is known."""
    made = Table()
    for name in FILES:
        made.add(importlib.import_module(f".{name}", __name__).FORMS)
    made.add(integer.CARRY)
    return made


__all__ = ["Action", "Lane", "Match", "Table", "Values", "table"]
