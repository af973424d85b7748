"""What the cases of an Op would notice, in one line for each dtype."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import NO_EVIDENCE, PASS, Strength


def lines(strengths: Sequence[Strength]) -> list[tuple[str, str]]:
    """`strength of softmax: 17 of 17 wrong answers would be noticed (float32)`, and its outcome."""
    return [(line(one), NO_EVIDENCE if one.alive else PASS) for one in strengths]


def line(one: Strength) -> str:
    """The line of one Op and dtype; where the check is too weak, with what would make it stronger.

    Slightly wrong answers count among those that pass, and are named as allowed.
    """
    dtype = f" ({one.dtype})" if one.dtype else ""
    total = len(one.killed) + len(one.alive) + len(one.allowed)
    text = (
        f"strength of {one.op}: {len(one.killed)} of {total} wrong answers would be noticed{dtype}"
    )
    if one.allowed:
        text += f"; within what is allowed: {', '.join(one.allowed)}"
    return f"{text}; check too weak: {one.weak}" if one.alive else text
