"""What made the difference, in a sentence or two for each operator and dtype: of rows alone.

The largest case that was timed. Its fastest kernel of ours, what its file says of the idea, the
copy beside it, our other versions, and whoever else comes nearest.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from assay.clock.statistics import seconds
from assay.errors import AssayError
from assay.op import Variant
from assay.target import load_op, parse
from assay.types import Row
from benchmarks import standing, targets
from benchmarks.sweep import PEERS

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
    copied = targets.of_copy(mine, first)
    share = f", {copied.shown[1]:.3f} of the copy beside it" if copied else ""
    took = seconds(first.timing.median)
    said = [f"**{first.op}, {label}**: `{first.label}` takes {took}, {rate}{share}."]
    about = idea(first.op, first.variant, ran(first))
    said += [f"{about[0].upper()}{about[1:].rstrip('.')}."] if about else []
    written = [r for r in mine if r.way in (*targets.OURS, *ALSO) and r.variant not in PEERS]
    others = beside(mine, first, [r for r in written if r.label != first.label])
    said += [f"Our other versions take {others} times as long."] if others else []
    peers = beside(mine, first, [r for r in mine if r not in written])
    said += [f"Others: {peers} times."] if peers else []
    return " ".join(said)


ALSO = ("numba", "extension")
"""Ways of ours that no ratio over a peer is claimed for."""


def beside(mine: Sequence[Row], first: Row, others: Sequence[Row]) -> str:
    """`eager 2.19, compiled 1.18`: times over that of the first, of each variant its best.

    mine: all rows of the case.
    """
    names = dict.fromkeys(row.variant for row in others)
    best = [row for name in names if (row := targets.best(others, (name,)))]
    ratios = sorted(
        (targets.against(mine, first, row).shown[1], row.variant, standing.besides(row))
        for row in best
    )
    return ", ".join(f"`{variant}` {ratio:.2f}{besides}" for ratio, variant, besides in ratios)


# ---- what a file says of the idea --------------------------------------------------------------

STANDS_FOR = {"split": "parts"}
"""A version whose kernels have another name: the first of them says the idea."""
ENTRY = re.compile(r"(?:assay::)?([\w*]+(?:,\s[\w*]+)*)(?:\s{2,}(\S.*))?")
"""`softmax_parts, softmax_write` and what stands behind, after two spaces or on the next lines."""
NO_ENTRY = ("shapes", "bytes", "FLOPs")
BEHIND = re.compile(r"\b(?:in|by) (?:Triton|Numba)\b(?!'s)[,:.]? ?(.*)|\bby (Triton's .*)")


def ran(row: Row) -> list[str]:
    """The kernels of a row by name, without what their templates were given."""
    kernels = row.counters.kernels if row.counters else ()
    return [kernel.name.partition("<")[0] for kernel in kernels]


def idea(op: str, variant: str, kernels: Sequence[str] = ()) -> str:
    """What the opening of a variant's file says of its kernel, or of all in it; else empty.

    kernels: names of those that ran, where a variant has several and they are known.
    """
    try:
        found = next(v for v in load_op(parse(op), op).variants if v.name == variant)
    except (AssayError, StopIteration):
        return ""  # a row of an operator or a variant that the library no longer has
    if found.source is None:
        file = module_of(op, found)
        kernel = "gradient_kernel" if "_grad" in op else "kernel"
        return of_module(file, f"{variant.partition('/')[2]}_{kernel}") if file else ""
    source = found.source.with_suffix(".cu")
    source = source if source.is_file() else found.source
    own = () if "/" in variant else kernels  # a version's name says more than its first kernel's
    return of_header(source.read_text(), [*own, *names_of(op, found)])


def names_of(op: str, variant: Variant) -> list[str]:
    """Names that a header may call a variant by: the kernel's, then those that it launches."""
    tail = variant.name.partition("/")[2]
    names = [f"{op}_{tail}", f"{op}_{STANDS_FOR[tail]}"] if tail in STANDS_FOR else []
    names += [f"{op}_{tail}"] if tail else [op, f"{op}_held"]
    names += re.findall(r"\[f?\"(\w+)", inspect.getsource(variant.function))
    return [*names, tail] if tail else names


def of_header(text: str, names: Sequence[str]) -> str:
    """The words behind the first of the names in the comment that opens a source.

    Else of the paragraph that says the idea; else what the first sentence says behind a colon.
    """
    lines = opening(text)
    told = list(entries(lines))
    for name in names:
        for number, (heads, words) in enumerate(told):
            own, *others = re.split(r"; (?=[a-z]+_\w+ the same )", words)
            if any(means(head, name) for head in heads) or own.startswith(f"{name}: "):
                if own.startswith("the same") and number:
                    return f"{told[number - 1][1].rstrip('.')}; {own}".replace("; the same;", ";")
                return own.removeprefix(f"{name}: ")
            for other in others:
                if other.startswith(f"{name} "):
                    return f"{own}; {other.removeprefix(f'{name} ')}"
    said = paragraphs_of(lines)
    for each in said:
        if each.startswith("The idea: "):
            return sentence(each.removeprefix("The idea: "))
    first = said[0] if said else ""
    return sentence(first.rpartition(": ")[2]) if ": " in first else ""


def opening(text: str) -> list[str]:
    """The comment that a source begins with, without its slashes."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].removeprefix(" ").rstrip())
    return lines


def entries(lines: Sequence[str]) -> Iterator[tuple[list[str], str]]:
    """Names, and the words behind them: those of a line, and of lines below that are set in."""
    heads: list[str] = []
    words: list[str] = []
    for line in [*lines, ""]:
        if line.startswith("   ") and heads:
            words.append(line.strip())
            continue
        if words:
            yield heads, plainly(" ".join(words))
        heads, words = [], []
        begins = ENTRY.fullmatch(line)
        if begins and begins[1] not in NO_ENTRY and ("_" in begins[1] or begins[2]):
            heads = begins[1].split(", ")
            words = [begins[2]] if begins[2] else []


def plainly(words: str) -> str:
    """`vectorised: one thread` of `vectorised (elementwise.cuh has it): one thread`, and without
    further sentences that send to another file."""
    first, *more = re.split(r"(?<=\.) ", re.sub(r"^(\w+) \([^)]*\): ", r"\1: ", words))
    return " ".join([first, *(each for each in more if not re.search(r"\.cuh?\b", each))])


def means(head: str, name: str) -> bool:
    """Whether `_grad_parts` or `*_naive` in a header is the kernel of that name; or `map1_naive` of
    the name `naive`."""
    if head.startswith(("_", "*_")):
        return name.endswith(head.removeprefix("*"))
    return head == name or head.endswith(f"_{name}")


def paragraphs_of(lines: Sequence[str]) -> list[str]:
    """The prose: each paragraph as one line."""
    whole = "\n".join(lines).split("\n\n")
    return [" ".join(each.split()) for each in whole if each.strip()]


def sentence(text: str) -> str:
    """The first sentence, without its full stop."""
    return re.split(r"(?<=[a-z)`\]])\.(?:\s|$)", text, maxsplit=1)[0].rstrip(".")


def module_of(op: str, variant: Variant) -> Path | None:
    """The file with a kernel in Triton or Numba, beside the one that launches it."""
    folder = Path(inspect.unwrap(variant.function).__code__.co_filename).parent
    files = sorted(folder.glob(f"*_{variant.way}.py"))
    backwards = "_grad" in op
    own = [file for file in files if ("_grad_" in file.name) == backwards]
    return next(iter(own or files), None)


def of_module(file: Path, kernel: str = "") -> str:
    """What a module's docstring says of a kernel, or else behind `in Triton`; with the next
    paragraph if that is little. Where it names another file, which has the kernel, what that says.
    """
    lines = (ast.get_docstring(ast.parse(file.read_text())) or "").splitlines()
    for heads, words in entries(lines):
        if kernel in heads:
            return sentence(words)
    said = paragraphs_of(lines)
    if not said:
        return ""
    elsewhere = re.search(r"what (\.\./\w+\.py) maps", said[0])
    if elsewhere:
        return of_module(file.parent / elsewhere[1])
    behind = BEHIND.search(said[0])
    words = sentence(behind[1] or behind[2] or "") if behind else ""
    words = "" if words.startswith("and ") else words
    if len(words.split()) > 3 or len(said) < 2 or said[1].startswith(NO_ENTRY):
        return words
    more = sentence(said[1])
    return f"{words}: {more[0].lower()}{more[1:]}" if words else more
