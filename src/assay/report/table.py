"""The table of a run: who is right, who is fastest and by how much, case by case; what next."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ..clock.floor import LAUNCH, WRONG
from ..clock.statistics import margin, ratio, verdict
from ..timings import ON_GPU
from ..types import ABSENT, Compiled, Machine, Row, Share, Strength, Verdict
from . import accuracy, hostile, strength, units
from .hostile import STYLES

SPREAD_SHARE = 100.0
COMPUTE_INTENSITY = 10
"""FLOP a byte above which work, not traffic, is what a reader wants to see."""


def show(
    console: Console,
    rows: Sequence[Row],
    machine: Machine | None,
    timed: bool,
    strengths: Sequence[Strength] = (),
) -> None:
    """Prints every case of every op, then a summary and what to do next."""
    declared = [row for row in rows if not row.case.zoo]
    for op, case in _in_order(declared):
        mine = [r for r in declared if r.op == op and r.case == case]
        one_case(console, mine, machine, timed)
    for op in dict.fromkeys(row.op for row in rows if row.case.zoo):
        hostile.show(console, op, [row for row in rows if row.case.zoo and row.op == op])
    for text, outcome in strength.lines(strengths):
        for part in textwrap.wrap(text, console.width, subsequent_indent="  "):
            console.print(Text(part, style=STYLES[outcome]))
    for line in builds(rows):
        _wrapped(console, line)
    console.print(Text(summary(rows), style="bold"))
    for line in advice(rows):
        for part in textwrap.wrap(line, console.width - 2, subsequent_indent=" " * 7):
            console.print(Text(f"  {part}"))


def _in_order(rows: Sequence[Row]) -> list[tuple[str, object]]:
    """Ops and cases in the order of the variant that has most of them: rows end out of order."""
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        counts[row.op, row.variant] = counts.get((row.op, row.variant), 0) + 1
    found: list[tuple[str, object]] = []
    for row in sorted(rows, key=lambda r: -counts[r.op, r.variant]):
        if (row.op, row.case) not in found:
            found.append((row.op, row.case))
    ops = list(dict.fromkeys(row.op for row in rows))
    return sorted(found, key=lambda pair: ops.index(pair[0]))


LABEL, TIME, SPREAD = 34, 9, 8
"""Columns of a timed line; what follows is wrapped under itself."""


def one_case(console: Console, rows: list[Row], machine: Machine | None, timed: bool) -> None:
    """Prints the rows of one case."""
    console.print(Text(heading(rows, machine), style="bold"))
    found = lines(rows, timed)
    label = min(LABEL, max(len(line.label) for line in found))
    for line in [*found, *conditions_of(rows)]:
        _print(console, line, label)
        for part in line.map.splitlines():
            console.print(Text(f"    {part}"), soft_wrap=True)
    console.print()


def _print(console: Console, line: Line, label: int) -> None:
    """One line; what is too long goes on under its own column."""
    head = f"  {line.label:<{label}}"
    if line.time:
        head += f"  {line.time:>{TIME}} {line.spread:>{SPREAD}}"
    indent = len(head) + 2
    width = max(20, console.width - indent)
    if width < 30 and not line.time:
        indent, width = 6, console.width - 6
    parts = textwrap.wrap(line.note, width) or [""]
    first = Text(head)
    if len(f"{head}  {parts[0]}") > console.width:
        console.print(first, no_wrap=True, overflow="ignore", crop=False)
        first = Text(" " * (indent - 2))
    console.print(first.append("  ").append(parts[0], style=STYLES[line.outcome]))
    for part in parts[1:]:
        console.print(Text(" " * indent).append(part, style=STYLES[line.outcome]))


def heading(rows: Sequence[Row], machine: Machine | None) -> str:
    """`softmax · rows=64 n=1025 · 525 kB, 328 kFLOP · H100, cold L2`."""
    row = next((r for r in rows if r.timing), rows[0])
    parts = [row.op, *([row.case.label] if row.case.label else [])]
    costs = [units.size(row.bytes)] if row.bytes is not None else []
    costs += [units.work(row.flops)] if row.flops is not None else []
    if costs:
        parts.append(", ".join(costs))
    if machine:
        device = next((r.device for r in rows if r.device.startswith("cuda")), "cpu")
        gpu = machine.gpu(device)
        conditions = [gpu.name if gpu else machine.cpu]
        if row.timing:
            conditions.append(row.timing.cache)
            if row.timing.threads:
                conditions.append(units.count(row.timing.threads, "thread"))
            if row.timing.clock_hz:
                low, high = (f"{hz / 1e6:.0f}" for hz in row.timing.clock_hz)
                conditions.append(f"{low} MHz" if low == high else f"{low}-{high} MHz")
        parts.append(", ".join(conditions))
    return " · ".join(parts)


@dataclass(frozen=True)
class Line:
    """One line of a case's table."""

    label: str
    time: str
    spread: str
    note: str
    outcome: str
    map: str = ""
    """Which elements of an output a failure is about."""


def lines(rows: Sequence[Row], timed: bool) -> list[Line]:
    """The fastest configuration of each variant first, then what is right, wrong and absent.

    Configurations with the same word and reason share a line.
    """
    best: dict[str, Row] = {}
    for row in rows:
        if row.timing and (row.variant not in best or _faster(row, best[row.variant])):
            best[row.variant] = row
    ranked = sorted(best.values(), key=lambda r: r.timing.median if r.timing else 0.0)
    found = [_timed(row, ranked, rows) for row in ranked]
    rest = [r for r in rows if r.variant not in best or (r.word != "right")]
    return found + _untimed(rest, timed)


def conditions_of(rows: Sequence[Row]) -> list[Line]:
    """What the clock noted of each timed row, and of which: once for all that share it."""
    timed = [row for row in rows if row.timing]
    notes = dict.fromkeys(note for row in timed if row.timing for note in row.timing.notes)
    found = []
    for note in notes:
        mine = [row.label for row in timed if row.timing and note in row.timing.notes]
        whose = "" if len(mine) == len(timed) else f"{', '.join(mine)}: "
        found.append(Line("note:", "", "", f"{whose}{note}", ABSENT))
    return found


def _faster(one: Row, other: Row) -> bool:
    assert one.timing
    assert other.timing
    return one.timing.median < other.timing.median


def _timed(row: Row, ranked: Sequence[Row], rows: Sequence[Row]) -> Line:
    timing = row.timing
    assert timing
    spread = (timing.high - timing.low) / 2 / timing.median
    tried = [r for r in rows if r.variant == row.variant and r.timing]
    notes = [comparison(row, ranked)]
    notes[:0] = [n for n in (throughput(row),) if n]
    if len(tried) > 1:
        notes.append(f"best of {len(tried)}")
    if timing.steady:
        notes.append(timing.steady)
    if _mixed(ranked) and timing.method == "wall":
        notes.append("on the CPU")
    if len({accuracy.precision(r) for r in ranked}) > 1:
        notes.append(f"ranked among {accuracy.precision(row) or 'undeclared'} alone")
    if row.verdict:
        notes += [accuracy.beside_eager(row.verdict), *row.verdict.findings]
    return Line(
        row.label,
        units.seconds(timing.median),
        f"±{SPREAD_SHARE * spread:.1f}%",
        "; ".join(n for n in notes if n),
        row.outcome,
    )


def throughput(row: Row) -> str:
    """`2976 GB/s, 98% of copy ceiling`: the share only where ceilings of this machine are known."""
    timing = row.timing
    if not timing or row.bytes is None:
        return ""
    text = units.rate(row.bytes / timing.median)
    if row.flops and row.flops > COMPUTE_INTENSITY * row.bytes:
        text = units.rate(row.flops / timing.median, "FLOP")
    return text + (f", {_reached(timing.share)}" if timing.share else "")


def _reached(share: Share) -> str:
    """`98% of copy ceiling`; of what is no traffic, `an empty launch is 70% of it`."""
    if share.of == LAUNCH and share.value <= WRONG:
        return f"an empty launch is {100 * share.value:.0f}% of it"
    text = f"{100 * share.value:.0f}% of {share.of} ceiling"
    if share.value <= WRONG:
        return text
    return f"{text}: the ceiling or the count of bytes or FLOP is wrong"


def comparison(row: Row, ranked: Sequence[Row]) -> str:
    """How much slower than the fastest of the same schedule and method, with its interval."""
    peers = [r for r in ranked if _comparable(r, row)]
    first = peers[0]
    if first is row:
        which = " of those on the CPU" if _mixed(ranked) and row.device == "cpu" else ""
        return f"fastest{which}" if len(peers) > 1 else ""
    assert first.timing
    assert row.timing
    low, middle, high = ratio(
        first.timing.samples, first.timing.rounds, row.timing.samples, row.timing.rounds
    )
    least = margin([first.timing, row.timing])
    said = verdict(low, middle, high, least)
    if said in ("faster", "slower") and abs(row.timing.median / first.timing.median - 1) < least:
        said = "cannot tell"  # the pairs differ, the medians do not: the clock's steps decide
    if said in ("same", "slower"):
        return "no slower, within the spread"
    if said == "cannot tell":
        return f"cannot tell from the fastest ({low:.3g} to {high:.3g} times)"
    return f"{middle:.3g} ± {(high - low) / 2:.1g} times slower"


def _mixed(ranked: Sequence[Row]) -> bool:
    """Whether both GPU and CPU times stand in one table."""
    return len({r.timing.method in ON_GPU for r in ranked if r.timing}) > 1


def _comparable(one: Row, other: Row) -> bool:
    assert one.timing
    assert other.timing
    return (
        one.timing.schedule == other.timing.schedule
        and (one.timing.method in ON_GPU) == (other.timing.method in ON_GPU)
        and accuracy.precision(one) == accuracy.precision(other)
    )


def _untimed(rows: Sequence[Row], timed: bool) -> list[Line]:
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.variant, row.word, _why(row, timed)), []).append(row)
    order = {"pass": 0, "fail": 1, "no evidence": 2, "absent": 3}
    found = []
    for (variant, word, why), same in groups.items():
        label = same[0].label if len(same) == 1 else f"{variant} ({len(same)} configurations)"
        note = word + (f": {why}" if why else "") + _compiled(same)
        verdict = same[0].verdict
        shown = verdict.map if verdict else ""
        found.append(Line(label, "", "", note, same[0].outcome, shown))
    return sorted(found, key=lambda line: order[line.outcome])


def _why(row: Row, timed: bool) -> str:
    if row.word == "check too weak":
        return ""  # it is the same for all: the line of the check's strength says it once
    if row.word != "right":
        return row.reason.replace(f"{Path.cwd()}{os.sep}", "")
    verdict = row.verdict
    parts = []
    if verdict and verdict.worst is not None:
        parts.append(accuracy.worst(verdict))
    if verdict and (judge := judged_apart(verdict)):
        parts.append(f"{judge}, not timed")
    elif timed and row.not_timed:
        parts.append(f"not timed: {row.not_timed}")
    if verdict and verdict.barriers:
        parts.append(_barriers(verdict))
    if verdict and verdict.findings:
        parts += verdict.findings
    return "; ".join(parts)


def _barriers(verdict: Verdict) -> str:
    """`5 barriers and waits, 4 of them needed; not here: bar.sync at k.cu:12`."""
    idle = [b for b in verdict.barriers if not b.needed]
    count = len(verdict.barriers)
    text = f"{count} barriers and waits, {count - len(idle)} of them needed"
    places = dict.fromkeys(f"{b.form} at {Path(b.file).name}:{b.line}" for b in idle)
    return text + (f"; not here: {', '.join(places)}" if places else "")


def judged_apart(verdict: Verdict) -> str:
    """Where a GPU's kernel was judged without one: `checked as sm_80`, `in the interpreter`."""
    if verdict.judge.startswith("sm_"):
        return f"checked as {verdict.judge}"
    stepped = verdict.judge in ("interpreter", "simulator")
    return f"in the {verdict.judge}" if stepped else ""


def _compiled(rows: Sequence[Row]) -> str:
    kernels = [k for row in rows if row.counters for k in row.counters.kernels]
    if not kernels or any(r.timing for r in rows):
        return ""
    texts = sorted({facts(k) for k in kernels})
    return " [" + "; ".join(texts[:2]) + ("; ..." if len(texts) > 2 else "") + "]"


def facts(kernel: Compiled) -> str:
    """`38 registers, 0 B spilled, 64 B shared`."""
    spilled = (kernel.spill_store_bytes or 0) + (kernel.spill_load_bytes or 0)
    parts = [
        f"{kernel.registers} registers",
        f"{spilled} B spilled",
        f"{kernel.shared_bytes} B shared",
    ]
    return ", ".join(parts)


def _wrapped(console: Console, text: str) -> None:
    for line in textwrap.wrap(text, console.width, subsequent_indent="  "):
        console.print(Text(line, style="dim"))


def builds(rows: Sequence[Row]) -> list[str]:
    """`built: extension in 12 s, cuda/online from cache; first call: compiled 4 s`, for each op."""
    found = []
    for op in dict.fromkeys(row.op for row in rows):
        mine = [r for r in rows if r.op == op]
        parts = [_build_time(name, mine) for name in dict.fromkeys(r.variant for r in mine)]
        calls = [_first_call(name, mine) for name in dict.fromkeys(r.variant for r in mine)]
        texts = [", ".join(p for p in parts if p), ", ".join(c for c in calls if c)]
        labels = [f"built for {op}: ", "first call: "]
        whole = "; ".join(label + text for label, text in zip(labels, texts) if text)
        found += [whole] if whole else []
    return found


def _build_time(name: str, rows: Sequence[Row]) -> str:
    made = [r.build for r in rows if r.variant == name and r.build and r.build.key]
    if not made:
        return ""
    fresh = [b.seconds for b in made if not b.cached]
    return f"{name} in {units.seconds(sum(fresh))}" if fresh else f"{name} from cache"


SLOW_FIRST_CALL = 0.1
"""Seconds from which a first call is worth telling: something was compiled in it."""


def _first_call(name: str, rows: Sequence[Row]) -> str:
    taken = [r.timing.first_call_seconds or 0 for r in rows if r.variant == name and r.timing]
    slowest = max(taken, default=0.0)
    return f"{name} up to {units.seconds(slowest)}" if slowest > SLOW_FIRST_CALL else ""


def summary(rows: Sequence[Row]) -> str:
    """`17 right, 2 not run, 1 wrong value`."""
    words: dict[str, int] = {}
    for row in rows:
        words[row.word] = words.get(row.word, 0) + 1
    if not words:
        return "nothing was judged"
    order = sorted(words.items(), key=lambda item: (item[0] != "right", -item[1]))
    return ", ".join(f"{number} {word}" for word, number in order)


def advice(rows: Sequence[Row]) -> list[str]:
    """What to do next: the first failure first."""
    found = []
    failed = [r for r in rows if r.outcome == "fail"]
    if failed:
        row = failed[0]
        hint = f": {row.verdict.advice}" if row.verdict and row.verdict.advice else ""
        case = f' --case "{row.case.label}"' if row.case.label else ""
        found.append(f"next:  {row.label}, {row.word}{hint}")
        found.append(f"then:  assay check ... -k {row.variant}{case}")
    if any(r.word == "check too weak" for r in rows):
        found.append("next:  choose inputs as the line `strength` says; nothing here is evidence")
    for why in dict.fromkeys(r.timing.no_share for r in rows if r.timing and r.timing.no_share):
        found.append(f"share: {why}")
    if not failed and any(r.verdict and judged_apart(r.verdict) for r in rows):
        found.append("next:  run the same command on a machine with a GPU to time what is right")
    return found
