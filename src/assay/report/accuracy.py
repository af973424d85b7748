"""How accurate a right variant is: its worst element, and all its errors beside those of eager."""

from __future__ import annotations

from ..types import Row, Verdict

NOTABLE = 1.5
"""From this ratio on, a difference in accuracy is told."""


def worst(verdict: Verdict) -> str:
    """`worst 0.4 of what rounding allows, 2.1x more accurate than eager`."""
    if verdict.worst is None:
        return ""
    text = f"worst {verdict.worst:.2g} of what rounding allows"
    ratio = beside_eager(verdict)
    return f"{text}, {ratio}" if ratio else text


def beside_eager(verdict: Verdict) -> str:
    """`2.1x more accurate than eager`: root mean squares of all errors; empty where much alike."""
    mine, eager = verdict.rms, verdict.eager_rms
    if not eager or mine is None:
        return ""
    if mine == 0:
        return "exact, as eager is not"
    ratio = eager / mine
    if ratio >= NOTABLE:
        return f"{_times(ratio)} more accurate than eager"
    return f"{_times(1 / ratio)} less accurate than eager" if ratio <= 1 / NOTABLE else ""


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.1f}x"


def precision(row: Row) -> str:
    """The class of arithmetic that a row was judged by: only one class is ranked at a time."""
    return (row.verdict.precision if row.verdict else "") or row.precision
