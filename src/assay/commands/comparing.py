"""`assay compare`: two files, revisions or variants; `assay rows`: rows as others write them."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..cases import ALIASES, parse_values
from ..clock.statistics import MARGIN
from ..comparison import judge, measure, picture, read
from ..comparison.child import Order
from ..comparison.conditions import chosen
from ..comparison.model import Comparison, Side
from ..comparison.text import text
from ..errors import AssayError
from ..rows import encode
from ..types import Row
from .running import INTERRUPTED, duration


def command(given: dict[str, Any]) -> int:
    """What the command line asked for: compares, prints, draws; the exit code.

    Raises AssayError.
    """
    margin = percent(given["fail_slower"]) if given["fail_slower"] else MARGIN
    across, allowed = chosen(given["across"] or ()), tuple(given["allow"] or ())
    rules = judge.Rules(margin=margin, across=across, allowed=allowed)
    order = Order(
        target="",
        device=given["device"],
        arch=given["arch"],
        case=parse_values(given["case"]) if given["case"] else {},
        dtypes=tuple(ALIASES.get(d, d) for d in (given["dtype"] or "").split(",") if d),
        budget=duration(given["budget"], "--budget") if given["budget"] else 0.0,
        quick=given["quick"],
        seed=given["seed"],
    )
    request = measure.Request(given["processes"], order)
    try:
        a, b, key = _sides(given["sides"], given["only"] or (), request)
    except KeyboardInterrupt:
        print("assay: interrupted; what was measured is kept", file=sys.stderr)
        return INTERRUPTED
    found = judge.compare(a, b, rules, key)
    if given["as_json"]:
        for noun in (*found.pairs, found.summary):
            print(encode(noun).decode())
    else:
        print(text(found))
    if given["svg"] is not None:
        _draw(found, given["svg"])
    return found.summary.exit_code


def _sides(
    sides: Sequence[str], variants: Sequence[str], given: measure.Request
) -> tuple[Side, Side, judge.Key]:
    if len(sides) == 1 and len(variants) == 2:
        return _variants(sides[0], variants, given)
    if len(sides) != 2:
        raise AssayError(
            "give two sides (row files, kept runs such as last~1, or REVISION:FILE.py), or one "
            "and two variants: assay compare kernels.py -k eager -k triton"
        )
    if any(measure.revision_of(side) for side in sides):
        a, b = measure.revisions(sides[0], sides[1], variants, given)
    else:
        a, b = (_only(_saved(side), variants) for side in sides)
    return a, b, judge.whole


def _saved(name: str) -> Side:
    if name.partition(":")[0].endswith(".py"):
        raise AssayError(
            f"{name}: it holds no rows; compare it with itself as it was, HEAD:{name}, "
            "or two of its variants: one file and two -k"
        )
    return read.side(name)


def _only(side: Side, variants: Sequence[str]) -> Side:
    """Those of the variants that `-k` names; all if it names none."""
    if not variants:
        return side
    mine = tuple(e for e in side.entries if {e.row.variant, e.row.way, e.row.label} & {*variants})
    if not mine:
        known = ", ".join(sorted({e.row.label for e in side.entries}))
        raise AssayError(f"-k {' -k '.join(variants)}: {side.name} has none of it; it has {known}")
    return Side(side.name, mine)


def _variants(
    text: str, variants: Sequence[str], given: measure.Request
) -> tuple[Side, Side, judge.Key]:
    """Two variants of one target, measured; or of one file of rows."""
    whole = read.side(text) if _is_rows(text) else measure.variants(text, variants, given)
    a, b = (_of(whole, name) for name in variants)
    return a, b, lambda row: (row.op, row.case.label, f"{variants[1]} / {variants[0]}")


def _of(side: Side, name: str) -> Side:
    """One variant with one set of knobs. Raises AssayError if it has several."""
    mine = [e for e in side.entries if name in (e.row.variant, e.row.label)]
    labels = sorted({e.row.label for e in mine})
    if not mine:
        known = ", ".join(sorted({e.row.label for e in side.entries}))
        raise AssayError(f"-k {name}: {side.name} has no such variant; it has {known}")
    if len(labels) > 1:
        raise AssayError(
            f"-k {name}: it has {len(labels)} configurations; name one: "
            f"{', '.join(repr(label) for label in labels[:4])}"
        )
    return Side(f"{side.name}, {labels[0]}", tuple(mine))


def _is_rows(text: str) -> bool:
    return text.endswith((".jsonl", ".json")) or re.fullmatch(r"last(~\d+)?", text) is not None


def _draw(found: Comparison, svg: Path) -> None:
    svg.write_text(picture.svg(found))
    print(f"assay: drawn in {svg}", file=sys.stderr)


def percent(text: str) -> float:
    """0.03 of `3%`. Raises AssayError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text.strip())
    if not found or not 0 < float(found.group(1)) < 100:
        raise AssayError(f"--fail-slower {text}: write a share above 0 and below 100, such as 3%")
    return float(found.group(1)) / 100


JSONL = "jsonl"


def convert(source: str, form: str, to: Path) -> None:
    """`assay rows`: a file of rows in another format. Raises AssayError."""
    forms = (*read.FORMATS, JSONL)
    if form not in forms:
        raise AssayError(f"--as {form}: the formats are {', '.join(forms)}")
    if to.exists():
        raise AssayError(f"--to {to}: it is there already; name a new file")
    nouns = read.nouns(source)
    if form == JSONL:
        to.write_bytes(b"".join(encode(noun) + b"\n" for noun in nouns))
        written, lost = sum(isinstance(noun, Row) for noun in nouns), ()
    else:
        written = read.FORMATS[form].save(nouns, to)
        lost = read.FORMATS[form].LOST
    total = sum(isinstance(noun, Row) for noun in nouns)
    print(f"{written:,} of {total:,} rows in {to}")
    if lost:
        print(f"not in it: {'; '.join(lost)}")
    if not written:
        raise AssayError(f"{source}: none of its rows can be written as {form}")
