"""Two sides -> a Comparison: every case paired up, its verdict, and what an exit code says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..clock.statistics import MARGIN, margin
from ..errors import AssayError
from ..types import FAIL, NO_EVIDENCE, Row, Timing, replace
from . import ratios
from .between import CONTROL, between, series
from .conditions import differences
from .model import (
    CANNOT_TELL,
    COMPARED,
    GONE,
    NEW,
    NO_NUMBER,
    REFUSED,
    SLOWER,
    UNKNOWN,
    WRONG,
    Comparison,
    Entry,
    Pair,
    Side,
    Summary,
)

ALLOWABLE = {
    "cannot-tell": "a case that might be slower by more than the margin does not fail",
    "missing": "a case that has a time on one side alone does not fail",
    "unjudged": "times of rows that nobody judged are compared",
}
"""What `--allow` takes, and what it does."""


@dataclass(frozen=True)
class Rules:
    """How strict a comparison is."""

    margin: float = MARGIN
    across: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    draws: int = ratios.DRAWS


Key = Callable[[Row], tuple[str, ...]]


def whole(row: Row) -> tuple[str, ...]:
    """A case of a kernel: the same op, case, variant and knobs."""
    return row.op, row.case.label, row.label


def compare(a: Side, b: Side, rules: Rules = Rules(), key: Key = whole) -> Comparison:
    """Every case that is on either side, in the order of A. Raises AssayError for wrong rules."""
    for word in rules.allowed:
        if word not in ALLOWABLE:
            raise AssayError(f"--allow {word}: it takes {', '.join(ALLOWABLE)}")
    sides = _grouped(a, key), _grouped(b, key)
    controls = _controls(a), _controls(b)
    pairs: list[Pair] = []
    estimates: list[ratios.Estimate] = []
    crossed: dict[str, tuple[str, str]] = {}
    untimed = 0
    for name in dict.fromkeys((*sides[0], *sides[1])):
        one = _One(name, sides[0].get(name, []), sides[1].get(name, []), rules, controls)
        pair = one.pair()
        if pair is None:
            untimed += 1
            continue
        pairs.append(pair)
        if pair.word in COMPARED:
            crossed.update(one.crossed)
            if one.estimate:
                estimates.append(one.estimate)
    summary = _summary(a, b, pairs, estimates, rules)
    return Comparison(tuple(pairs), replace(summary, across=crossed, untimed=untimed))


def _grouped(side: Side, key: Key) -> dict[tuple[str, ...], list[Entry]]:
    found: dict[tuple[str, ...], list[Entry]] = {}
    for entry in side.entries:
        if not entry.row.case.zoo:
            found.setdefault(key(entry.row), []).append(entry)
    return found


def _controls(side: Side) -> list[Entry]:
    return [e for e in side.entries if e.row.variant == CONTROL and e.row.word == "right"]


class _One:
    """One case of one kernel."""

    def __init__(
        self,
        name: tuple[str, ...],
        a: list[Entry],
        b: list[Entry],
        rules: Rules,
        controls: tuple[list[Entry], list[Entry]],
    ):
        self.name, self.a, self.b, self.rules, self.controls = name, a, b, rules, controls
        self.crossed: dict[str, tuple[str, str]] = {}
        self.estimate: ratios.Estimate | None = None

    def pair(self) -> Pair | None:
        """None if there is no time on either side, and nothing wrong on B."""
        a, b = (_timed(side, self.rules) for side in (self.a, self.b))
        wrong = next((e.row for e in self.b if e.row.outcome == FAIL), None)
        if wrong is not None:
            return self._said(WRONG, f"B is {wrong.word}: {wrong.reason or _detail(wrong)}")
        if a and not self.b:
            return self._said(GONE)
        if b and not self.a:
            return self._said(NEW)
        if a and b:
            return self._compared(a, b)
        if not a and not b and not any(e.row.timing for e in (*self.a, *self.b)):
            return None
        side, entries = ("A", self.a) if not a else ("B", self.b)
        return self._said(NO_NUMBER, f"{side}: {_why(entries[-1].row)}")

    def _compared(self, a: list[Entry], b: list[Entry]) -> Pair:
        differ = differences(a, b)
        refused = {n: v for n, v in differ.items() if n not in self.rules.across}
        if refused:
            return self._said(REFUSED, "; ".join(_differ(n, *v) for n, v in refused.items()))
        self.crossed = differ
        apart, how = between(a[0], b[0], self.controls, self.rules.draws)
        found = ratios.estimate(_series(a), _series(b), apart, self.rules.draws)
        more: dict[str, Any] = {
            "a_seconds": _typical(a),
            "b_seconds": _typical(b),
            "processes": (len(a), len(b)),
            "notes": tuple(_notes(a, b)),
        }
        if isinstance(found, str):
            return self._said(CANNOT_TELL, found, **more)
        self.estimate = found
        if found.between:
            own = a[0].row.variant == CONTROL
            how = "it shows what differs between the two processes" if own else how
            more["notes"] = (how, *more["notes"])
        low, middle, high = found.shown
        least = margin(_timings([*a, *b]), self.rules.margin)
        return self._said(
            ratios.verdict(found, least),
            "",
            ratio=middle,
            low=low,
            high=high,
            seen=found.seen(least),
            paired=found.paired,
            **more,
        )

    def _said(self, word: str, reason: str = "", **more: Any) -> Pair:
        op, case, *label = self.name
        return Pair(op=op, case=case, label=" ".join(label), word=word, reason=reason, **more)


def _timed(side: Sequence[Entry], rules: Rules) -> list[Entry]:
    """What has a time that counts, each process once."""
    found: dict[str, Entry] = {}
    for entry in side:
        row = entry.row
        judged = row.word == "right"
        if row.outcome == NO_EVIDENCE and "unjudged" in rules.allowed:
            judged = True
        if judged and row.timing:
            found.setdefault(row.timing.schedule, entry)
    return list(found.values())


def _timings(entries: Sequence[Entry]) -> list[Timing]:
    return [entry.row.timing for entry in entries if entry.row.timing]


def _series(entries: Sequence[Entry]) -> list[ratios.Series]:
    return [series(timing) for timing in _timings(entries)]


def _typical(entries: Sequence[Entry]) -> float:
    logs = [math.log(timing.median) for timing in _timings(entries)]
    return math.exp(sum(logs) / len(logs))


def _notes(a: Sequence[Entry], b: Sequence[Entry]) -> list[str]:
    notes = _same_samples(a, b)
    for name, side in (("A", a), ("B", b)):
        unsteady = [timing.steady for timing in _timings(side) if timing.steady]
        if unsteady:
            notes.append(f"{name} {unsteady[0]}")
        if any(entry.row.outcome == NO_EVIDENCE for entry in side):
            notes.append(f"{name} was not judged")
    return notes


def _same_samples(a: Sequence[Entry], b: Sequence[Entry]) -> list[str]:
    samples = [{timing.samples for timing in _timings(side)} for side in (a, b)]
    return ["the very same samples on both sides"] if samples[0] == samples[1] else []


def _differ(name: str, a: str, b: str) -> str:
    said = f"{name}: A {a}, B {b}"
    hint = " (`bench --json` prints no machine: give the kept run)" if UNKNOWN in (a, b) else ""
    return said + hint


def _why(row: Row) -> str:
    if row.word == "right":
        return f"right, not timed: {row.not_timed or 'it was only checked'}"
    return f"{row.word}: {row.reason or _detail(row)}"


def _detail(row: Row) -> str:
    return (row.verdict.detail if row.verdict else "") or "no reason is kept"


def _summary(
    a: Side,
    b: Side,
    pairs: Sequence[Pair],
    estimates: Sequence[ratios.Estimate],
    rules: Rules,
) -> Summary:
    made = Summary(
        a=a.name,
        b=b.name,
        margin=rules.margin,
        allowed=rules.allowed,
        counts=dict(Counter(pair.word for pair in pairs)),
        exit_code=exit_code(pairs, rules),
    )
    known = [pair for pair in pairs if pair.ratio is not None]
    if not known:
        return made
    low, middle, high = ratios.mean(estimates).shown
    worst = max(known, key=lambda pair: pair.ratio or 0.0)
    return replace(
        made,
        ratio=middle,
        low=low,
        high=high,
        worst=" ".join(filter(None, (worst.op, worst.label, worst.case))),
        worst_ratio=worst.ratio,
    )


PASSED, FAILED, INVALID, UNDECIDED = 0, 1, 3, 4


def exit_code(pairs: Sequence[Pair], rules: Rules) -> int:
    """1: slower, or wrong on B. 3: nothing to compare, or not all that A has a time for could be.
    4: slower by more than the margin can't be excluded. 0: it can, everywhere."""
    words = {pair.word for pair in pairs}
    if words & {SLOWER, WRONG}:
        return FAILED
    compared = [pair for pair in pairs if pair.word in COMPARED]
    gone = words & {GONE, NO_NUMBER} and "missing" not in rules.allowed
    if not compared or REFUSED in words or gone:
        return INVALID
    if any(open_(pair, rules.margin) for pair in compared) and "cannot-tell" not in rules.allowed:
        return UNDECIDED
    return PASSED


def open_(pair: Pair, margin: float) -> bool:
    """Whether more than the margin slower can't be excluded."""
    return pair.word == CANNOT_TELL and (pair.high is None or pair.high > 1 + margin)
