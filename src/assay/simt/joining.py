"""Accesses of a thread that lie side by side, taken as one: what the assembler or L1 makes of them.

PTX may write a vector as scalars, `[%rd1]` and `[%rd1+4]`, or read the members of a struct one by
one. By itself each of them looks strided; together they use all that they touch. The sectors of
such a group are those of its worst member, or the ideal of all, whichever is more.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

from .code import Site
from .counts import Access
from .results import Tally

SECTOR = 32
ADDRESS = re.compile(r"\[\s*(%\w+)\s*(?:\+\s*(-?\d+))?\s*\]")
NAMES = [field.name for field in fields(Access)]
SECTORS, IDEAL = NAMES.index("sectors"), NAMES.index("ideal_sectors")


def joined(tally: Tally) -> Tally:
    """The same counts, with sectors of global accesses side by side counted once."""
    sites = tally.sites.copy()
    for group in groups(tally.code.sites):
        ideal = [int(sites[number][IDEAL]) for number in group]
        joint = max(sum(ideal), *(int(sites[number][SECTORS]) for number in group))
        for number, own in zip(group, ideal):
            sites[number][SECTORS] = own
        sites[group[0]][SECTORS] = joint - sum(ideal[1:])
    return replace(tally, sites=sites)


def groups(sites: list[Site]) -> list[list[int]]:
    """Numbers of sites that name one register, do one thing, and lie within a sector's length."""
    by: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for number, site in enumerate(sites):
        found = ADDRESS.search(site.text)
        if found and site.space in ("global", "generic", ""):
            verb = site.text.split(".")[0]
            by.setdefault((verb, site.space, found[1]), []).append((int(found[2] or 0), number))
    made = []
    for members in by.values():
        group: list[tuple[int, int]] = []
        for offset, number in sorted(members):
            if group and offset - group[0][0] >= SECTOR:
                made.append(group)
                group = []
            group.append((offset, number))
        made.append(group)
    return [[number for _, number in group] for group in made if len(group) > 1]
