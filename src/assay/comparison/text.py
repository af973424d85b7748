"""What a comparison looks like in a terminal, at 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ..report.units import count, seconds
from . import picture
from .judge import ALLOWABLE, FAILED, INVALID, PASSED, UNDECIDED, open_
from .model import COMPARED, GONE, NEW, NO_NUMBER, REFUSED, SLOWER, WRONG, Comparison, Pair, Summary

WIDTH = 80
LABEL = 26
MOST = 10.0
ORDER = (*COMPARED, WRONG, REFUSED, NO_NUMBER, GONE, NEW)


def text(found: Comparison) -> str:
    """The page."""
    said = found.summary
    compared = [pair for pair in found.pairs if pair.word in COMPARED]
    lines = _heading(said)
    if compared:
        known = [p for p in compared if p.ratio is not None]
        at = picture.axis([_ends(p) for p in known], said.margin)
        for name in dict.fromkeys((p.op, p.case) for p in compared):
            lines += ["", " · ".join(filter(None, name))]
            for pair in compared:
                if (pair.op, pair.case) == name:
                    lines += _pair(pair, at, said.margin)
        lines += ["", *_legend(at, said)]
    lines += _others(found.pairs)
    return "\n".join([*lines, "", *_end(found)])


def _ends(pair: Pair) -> tuple[float, float, float]:
    return pair.low or 0.0, pair.ratio or 0.0, pair.high or 0.0


def _wrapped(line: str, indent: int = 2) -> list[str]:
    return textwrap.wrap(line, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False)


def _heading(said: Summary) -> list[str]:
    lines = [*_wrapped(f"A  {said.a}", 3), *_wrapped(f"B  {said.b}", 3)]
    lines += _wrapped(
        f"B / A: above 1, B takes longer. No difference below {share(said.margin)} is claimed."
    )
    for name, (a, b) in said.across.items():
        lines += _wrapped(f"compared across {name}, as --across told: A {a}, B {b}")
    for name in said.allowed:
        lines += _wrapped(f"--allow {name}: {ALLOWABLE[name]}")
    return lines


def _pair(pair: Pair, at: picture.Axis, margin: float) -> list[str]:
    times = "".join(f"{seconds(t):>11}" for t in (pair.a_seconds, pair.b_seconds) if t is not None)
    ratio = f"  {interval(pair)}" if pair.ratio is not None else ""
    head = [f"  {pair.label:<{LABEL}}{times}{ratio}"]
    if len(pair.label) > LABEL:
        head = [f"  {pair.label}", f"  {'':<{LABEL}}{times}{ratio}"]
    if pair.ratio is None:
        return head + _wrapped(f"    {pair.word}: {pair.reason}", 6)
    drawn = picture.line(at, *_ends(pair), margin)
    lines = [*head, f"    {drawn}  {pair.word}"]
    notes = [f"sees {share(pair.seen or 0.0)}", *_processes(pair), *pair.notes]
    if pair.word not in ("same", SLOWER) and not open_(pair, margin) and pair.word != "faster":
        notes.insert(0, f"not {share(margin)} slower")
    return lines + _wrapped(f"    {'; '.join(notes)}", 6)


def _processes(pair: Pair) -> list[str]:
    a, b = pair.processes
    if a == b:
        how = ", paired by round" if pair.paired else " a side" if a > 1 else ""
        return [f"{a} process{'es' if a > 1 else ''}{how}"] if a > 1 or pair.paired else []
    return [f"{a} and {b} processes"]


def interval(noun: Pair | Summary) -> str:
    """`1.203 (1.192 to 1.214)`."""
    assert noun.ratio is not None
    assert noun.low is not None
    assert noun.high is not None
    return f"{noun.ratio:.4g} ({noun.low:.4g} to {noun.high:.4g})"


def share(value: float) -> str:
    """`3 %`; nothing finer, or larger, than a reader can use."""
    if value >= MOST:
        return f"no less than {MOST:.0f} times"
    return f"{100 * value:.2g} %" if value < 1 else f"{100 * value:,.0f} %"


def _legend(at: picture.Axis, said: Summary) -> list[str]:
    return [
        f"    {picture.scale(at)}",
        *_wrapped(
            "o is B / A, --- its 95 % interval, | is 1, : the margin. Faster and slower are "
            "claimed at 99.9 %. `sees`: a smaller slowdown may have gone unnoticed."
        ),
    ]


def _others(pairs: Sequence[Pair]) -> list[str]:
    """Those without a ratio; alike ones in one line."""
    found: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        if pair.word not in COMPARED:
            found.setdefault((pair.word, pair.reason), []).append(pair)
    lines = []
    for (word, reason), mine in found.items():
        first = " ".join(filter(None, (mine[0].op, mine[0].label, mine[0].case)))
        more = f" and {len(mine) - 1:,} more" if len(mine) > 1 else ""
        lines += _wrapped(f"{word}: {first}{more}{f' ({reason})' if reason else ''}")
    return ["", *lines] if lines else []


def _end(found: Comparison) -> list[str]:
    said = found.summary
    lines = []
    if said.ratio is not None:
        cases = sum(p.ratio is not None for p in found.pairs)
        losses = said.counts.get(SLOWER, 0)
        lines += _wrapped(
            f"geometric mean of {count(cases, 'ratio')}: {interval(said)}; worst "
            f"{said.worst_ratio:.4g} ({said.worst}); {losses or 'no'} slower"
        )
    counts = ", ".join(f"{said.counts[word]} {word}" for word in ORDER if word in said.counts)
    lines += _wrapped(counts or "nothing on either side has a time")
    if said.untimed:
        lines += _wrapped(f"{count(said.untimed, 'kernel')} and cases without a time on any side")
    return lines + _wrapped(f"exit code {said.exit_code}: {conclusion(said)}")


def conclusion(said: Summary) -> str:
    """What the exit code means."""
    undecided = "take more samples or processes, or a wider margin"
    meanings = {
        PASSED: f"nothing is {share(said.margin)} slower, at 95 %",
        FAILED: "a case is slower, or wrong",
        INVALID: "nothing to compare, or not everything could be",
        UNDECIDED: f"cannot tell whether a case is {share(said.margin)} slower; {undecided}",
    }
    if said.exit_code == PASSED and "cannot-tell" in said.allowed:
        return f"nothing is shown to be {share(said.margin)} slower; --allow cannot-tell"
    return meanings[said.exit_code]
