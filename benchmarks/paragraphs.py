"""What made the difference, in a sentence or two for each operator and dtype: of rows alone.

The largest case that was timed. Its fastest kernel of ours, what its file says of the idea, the
copy beside it, our other versions, and whoever else comes nearest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.clock.statistics import seconds
from assay.errors import AssayError
from assay.target import load_op, parse
from assay.types import Row
from benchmarks import targets

LEAST = 1 << 20
"""Bytes of a case below which launching decides."""


def paragraph(rows: Sequence[Row]) -> str:
    """Of rows of one operator and dtype; empty where none of ours was timed on a large case."""
    timed = [row for row in rows if row.timing and (row.bytes or 0) >= LEAST]
    timed = [row for row in timed if row.device != "cpu"]
    ours = [row for row in timed if row.way in targets.OURS]
    if not ours:
        return ""
    label = max(ours, key=lambda row: row.bytes or 0).case.label
    mine = [row for row in timed if row.case.label == label]
    first = targets.best(mine, ways=targets.OURS)
    assert first is not None
    assert first.timing is not None
    rate = f"{(first.bytes or 0) / first.timing.median / 1e9:,.0f} GB/s"
    copied = targets.of_copy(first)
    share = f", {copied[1]:.3f} of the copy beside it" if copied else ""
    took = seconds(first.timing.median)
    said = [f"**{first.op}, {label}**: `{first.label}` takes {took}, {rate}{share}."]
    about = idea(first.op, first.variant)
    said += [f"{about[0].upper()}{about[1:].rstrip('.')}."] if about else []
    others = beside(first, [r for r in mine if r is not first and r.way in targets.OURS])
    said += [f"Our other versions take {others} times as long."] if others else []
    peers = beside(first, [r for r in mine if r.way not in targets.OURS])
    said += [f"Others: {peers} times."] if peers else []
    return " ".join(said)


def beside(first: Row, others: Sequence[Row]) -> str:
    """`eager 2.19, compiled 1.18`: times over that of the first, of each variant its best."""
    names = dict.fromkeys(row.variant for row in others)
    best = [row for name in names if (row := targets.best(others, (name,)))]
    ratios = sorted((targets.against(first, row)[1], row.variant) for row in best)
    return ", ".join(f"`{variant}` {ratio:.2f}" for ratio, variant in ratios)


def idea(op: str, variant: str) -> str:
    """What the first lines of a variant's source say of the kernel of that name; else empty."""
    try:
        found = next(v for v in load_op(parse(op), op).variants if v.name == variant)
    except (AssayError, StopIteration):
        return ""  # a row of an operator or a variant that the library no longer has
    if found.source is None:
        return ""
    return of_header(found.source.read_text(), f"{op}_{variant.partition('/')[2]}")


def of_header(text: str, name: str) -> str:
    """The words behind a name in the comment that opens a source, lines that go on among them."""
    words: list[str] = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        begins = re.match(
            rf"//\s+(?:[\w, ]*,\s)?{re.escape(name)}(?:,[\w, ]*?)?\s{{2,}}(\S.*)", line
        )
        if begins:
            words = [begins.group(1)]
        elif words and re.match(r"//\s{10,}\S", line):
            words.append(line[2:].strip())
        elif words:
            break
    return " ".join(words)
