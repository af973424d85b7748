"""The hostile inputs of one op in a few lines: how many each variant stood, which not."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ..types import ABSENT, FAIL, PASS, Row
from . import units

STYLES = {"pass": "green", "fail": "red", "no evidence": "yellow", "absent": "dim"}
MOST_NAMED = 4
"""Failures of one variant with the same word that are named one by one."""


def show(console: Console, op: str, rows: Sequence[Row]) -> None:
    """Prints the block of one op."""
    console.print(Text(heading(op, rows), style="bold"))
    for text, outcome in lines(rows):
        wrapped = textwrap.wrap(text, console.width, initial_indent="  ", subsequent_indent=" " * 6)
        for part in wrapped:
            console.print(Text(part, style=STYLES[outcome]))
    console.print()


def heading(op: str, rows: Sequence[Row]) -> str:
    """`softmax · 52 hostile inputs: sizes; x: nan, inf, stepped`."""
    kinds: dict[str, list[str]] = {}
    for row in rows:
        name, _, kind = row.case.zoo.rpartition(":")
        known = kinds.setdefault(name, [])
        if kind not in known:
            known.append(kind)
    parts = ["sizes"] if "" in kinds else []
    parts += [f"{name}: {', '.join(found)}" for name, found in kinds.items() if name]
    count = len({repr(row.case) for row in rows})
    return f"{op} · {units.count(count, 'hostile input')}: {'; '.join(parts)}"


def lines(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """One line a variant, then one for each of its failures; with the outcome for its colour."""
    found: list[tuple[str, str]] = []
    asked = [row for row in rows if not row.reason.startswith("asked of no variant")]
    for variant in dict.fromkeys(row.variant for row in asked):
        found += _variant(variant, [row for row in asked if row.variant == variant])
    for why in dict.fromkeys(row.reason for row in rows if row not in asked):
        cases = [f"[{row.case.label}]" for row in rows if row.reason == why]
        found.append((f"{why}: {', '.join(cases)}", ABSENT))
    return found


def _variant(variant: str, rows: Sequence[Row]) -> list[tuple[str, str]]:
    right = [row for row in rows if row.word == "right"]
    failed = [row for row in rows if row.outcome == FAIL]
    parts = [f"{len(right)} of {len(rows)} right"] if right or not failed else []
    refused = [row for row in rows if row.word == "refused"]
    if refused:
        parts.append(f"{len(refused)} refused: {refused[0].reason}")
    absent: dict[str, int] = {}
    for row in rows:
        if row.outcome == ABSENT:
            absent[row.reason] = absent.get(row.reason, 0) + 1
    parts += [f"{count} not run: {why}" for why, count in absent.items()]
    found = [(f"{variant}  {'; '.join(parts)}", PASS)] if parts else []
    for word in dict.fromkeys(row.word for row in failed):
        same = [row for row in failed if row.word == word]
        for row in same[:MOST_NAMED]:
            reason = row.reason.replace(f"{Path.cwd()}{os.sep}", "")
            found.append((f"{row.label}  {word} at [{row.case.label}]: {reason}", FAIL))
        if len(same) > MOST_NAMED:
            others = ", ".join(f"[{row.case.label}]" for row in same[MOST_NAMED:])
            found.append((f"{variant}  {word} too at {others}", FAIL))
    return found
