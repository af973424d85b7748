"""From rows to choices: of each case, the fastest kernel, and of equals the one declared first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ..clock.statistics import margin, ratio, verdict
from ..timings import ON_GPU
from ..types import Case, Input, Row, Scalar

LEFT_OUT = frozenset({"compiled", "python"})
"""Ways that no operator serves: one compiles at its first call, the other is slow on purpose."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The variant for inputs like these on one device."""

    op: str
    variant: str
    knobs: dict[str, Scalar]
    source_hash: str
    """Of the variant when it was timed: with another it is no choice."""
    case: Case
    inputs: tuple[Input, ...]
    """Their form: dtypes, shapes and strides."""
    seconds: float
    low: float
    high: float
    cache: str
    tied: tuple[str, ...] = ()
    """Labels of kernels that could not be told from it, and were declared later."""
    over: tuple[str, float] | None = None
    """The fastest that is left out, and its seconds, where it was faster."""


def choices(rows: Sequence[Row], order: Sequence[str]) -> Iterator[Choice]:
    """A choice for each case of each Op that has a timing. order: variants as they are declared.

    Kernels of another precision class than the case's dtype are left out: nobody asked for them.
    """
    for op, case in dict.fromkeys((row.op, row.case.label) for row in rows):
        mine = [r for r in rows if r.op == op and r.case.label == case and r.timing]
        served = [r for r in mine if r.way not in LEFT_OUT and not r.precision]
        device = "cuda" if any(r.device.startswith("cuda") for r in served) else "cpu"
        here = [r for r in served if r.device.startswith(device)]
        if here:
            yield _choice(here, mine, order)


def _choice(here: list[Row], every: list[Row], order: Sequence[str]) -> Choice:
    fastest = min(here, key=_seconds)
    equals = [row for row in here if row is fastest or not _slower(row, fastest)]
    places = {name: place for place, name in enumerate(order)}
    equals.sort(key=lambda row: places.get(row.variant, len(places)))
    chosen, timing = equals[0], equals[0].timing
    assert timing is not None
    beaten = [r for r in every if r.way in LEFT_OUT and _slower(chosen, r)]
    over = min(beaten, key=_seconds, default=None)
    return Choice(
        op=chosen.op,
        variant=chosen.variant,
        knobs=chosen.knobs,
        source_hash=chosen.source_hash,
        case=chosen.case,
        inputs=tuple(_form(one) for one in timing.inputs),
        seconds=timing.median,
        low=timing.low,
        high=timing.high,
        cache=timing.cache,
        tied=tuple(row.label for row in equals[1:]),
        over=(over.label, _seconds(over)) if over is not None else None,
    )


def _slower(row: Row, other: Row) -> bool:
    """Whether a row is slower than another of its schedule."""
    a, b = row.timing, other.timing
    assert a is not None
    assert b is not None
    if a.schedule != b.schedule or (a.method in ON_GPU) != (b.method in ON_GPU):
        return False
    found = ratio(a.samples, a.rounds, b.samples, b.rounds)
    return verdict(*found, margin=margin([a, b])) == "slower"


def _seconds(row: Row) -> float:
    assert row.timing is not None
    return row.timing.median


def _form(one: Input) -> Input:
    return Input(name=one.name, text=one.text, dtype=one.dtype, shape=one.shape, stride=one.stride)
