"""An explanation as text: the conclusion, then the findings, the largest predicted gain first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import Explanation

WIDTH = 80


def micro(seconds: float) -> str:
    """`45.1 us`."""
    return f"{seconds * 1e6:,.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:,.2f} ms"


def lines(found: Explanation) -> Iterator[str]:
    """As lines of 80 columns."""
    facts = found.facts
    head = "  ".join(part for part in (facts.op, facts.label, facts.case) if part)
    if head:
        yield head
    yield from _wrapped(f"{facts.card.name}: {found.sentence}" if found.costs else found.sentence)
    if found.sound:
        by = "" if facts.seconds is not None else ", by the model: it was not measured"
        yield f"nothing left to gain in this kernel{by}"
        if found.bound == "memory":
            yield "what is left is fusion with a neighbour, which saves what both move"
        elif found.bound == "launches":
            yield "what is left is more work a call: a batch, or a CUDA graph of many calls"
    for number, one in enumerate(found.findings, 1):
        yield f"{number}. {one.cause}: about {one.gain:.1f} times faster without"
        yield from _wrapped(f"   {one.evidence} ({one.confidence})", "   ")
        yield from _wrapped(f"   {one.arithmetic} (estimated)", "   ")
        yield from _wrapped(f"   do: {one.advice}", "   ")
    if facts.counts is not None and facts.counted_case not in ("", facts.case):
        yield from _wrapped(
            f"counted on the CPU for {facts.counted_case} and half of it, extended to this "
            f"case, {facts.scale:,.4g} times the work"
        )
    for reason in facts.unknown:
        yield from _wrapped(f"not known: {reason}")


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent)
