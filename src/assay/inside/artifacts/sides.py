"""What `--diff A B` names: variants, their knobs, other files, or revisions."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from ...comparison.measure import exported, revision_of
from ...errors import AssayError
from ...op import WAYS
from ...target import Target, parse

WORKING = "."
"""Names the working tree among revisions."""


@dataclass(frozen=True)
class Side:
    """One of the two."""

    target: Target
    variant: str


def resolved(
    stack: ExitStack, target: str, only: list[str], sides: tuple[str, str]
) -> tuple[Side, Side]:
    """Both sides; files of a revision are there until the stack ends. Raises AssayError."""
    a, b = (_side(stack, target, only, text) for text in sides)
    return a, b


def _side(stack: ExitStack, target: str, only: list[str], text: str) -> Side:
    words = text.split() or [""]
    if words[0].split("/")[0] in WAYS:
        return Side(parse(target), text)
    if "=" in words[0]:
        return Side(parse(target), f"{_one(only, text)} {text}")
    variant = _one(only, text)
    if text == WORKING:
        return Side(parse(target), variant)
    if words[0].partition(":")[0].endswith(".py"):
        return Side(parse(text), variant)
    side = revision_of(f"{text}:{target}")
    if side is None:
        raise AssayError(
            f"--diff {text}: neither a variant (way/name), nor knobs (BLOCK=256), and a revision "
            f"is one of a file: {target} is none"
        )
    folder = stack.enter_context(exported(side))
    return Side(parse(str(folder / side.target)), variant)


def _one(only: list[str], text: str) -> str:
    if len(only) != 1:
        raise AssayError(f"--diff {text}: say of which variant, with one -k")
    return only[0]
