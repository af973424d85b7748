"""What experiments showed, as text: the word first, then predicted beside seen, then the change."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from ..text import WIDTH, micro
from .catalogue import WALL
from .judging import CONFIRMED, NOT, Trial

HEAD = (
    "tried on the GPU: each changes what is computed on purpose, so these are times of "
    "experiments, not of kernels"
)
WORDS = 12


def lines(trials: Sequence[Trial]) -> Iterator[str]:
    """Lines of 80 columns; the counts last."""
    yield from textwrap.wrap(HEAD, WIDTH)
    for one in trials:
        of = f" ({one.cause})" if one.cause else " (the model)"
        yield from _wrapped(f"{one.word:<{WORDS}} {one.name or one.cause}{of if one.name else ''}")
        if one.word == NOT:
            yield from _wrapped(f"{one.said}", WORDS + 1)
            continue
        yield from _wrapped(_numbers(one), WORDS + 1)
        yield from _wrapped(f"{one.what}: {one.said}", WORDS + 1)
    tried = [one for one in trials if one.word != NOT]
    came = sum(one.word == CONFIRMED for one in tried)
    yield f"{came} of {len(tried)} came true (within a factor of 1.5, and in their direction)"


def _numbers(one: Trial) -> str:
    assert one.gain is not None
    assert one.before is not None
    assert one.after is not None
    low, middle, high = one.gain
    said = f"{one.predicted:.2f}x predicted" if one.predicted is not None else "nothing predicted"
    clock = "until the host goes on" if one.clock == WALL else "events, cold L2"
    late = f"; {one.late} samples have launch time in them" if one.late else ""
    return (
        f"{said}, {middle:.2f}x seen ({low:.2f} to {high:.2f}): {micro(one.before)} unchanged, "
        f"{micro(one.after)} changed, {clock}{late}"
    )


def _wrapped(text: str, indent: int = 0) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent or WORDS + 1),
    )
