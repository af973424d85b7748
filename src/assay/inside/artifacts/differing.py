"""Two variants, knobs or revisions side by side: what changed in plain lines, and a diff."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from ...report import units
from ...types import Compiled
from . import summary
from .mix import Mix
from .model import Part, Shown

COUNTED = ("registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes")
SAID = {
    "registers": "registers",
    "stack_bytes": "bytes of stack",
    "spill_store_bytes": "bytes of spill stores",
    "spill_load_bytes": "bytes of spill loads",
}
NOISE = {
    "sass": (r"^//## .*\n", r"/\*[0-9a-f]{4,}\*/\s*", r"[ \t]+(?=\n)"),
    "ptx": (r"^\s*\.(loc|file)\b.*\n", r"^\s*\.section\s+\.debug[\s\S]*", r"//.*"),
    "ttir": (r"^#loc.*\n", r"\s*loc\(.*\)$"),
    "ttgir": (r"^#loc.*\n", r"\s*loc\(.*\)$"),
    "llir": (r"^!.*\n", r",? !dbg !\d+"),
}
"""Of each level, what moves with any edit and says nothing: addresses, lines of source."""


def changes(a: Shown, b: Shown) -> list[str]:
    """What is other in B, kernel by kernel; kernels are matched by name, else by their order."""
    found = []
    for first, second in _pairs(a, b):
        said = [*_reports(first.report, second.report), *_mixes(a, first, b, second)]
        name = first.name if first.name == second.name else f"{first.name} -> {second.name}"
        found.append(f"{name}: {', '.join(said) or 'no difference in what is counted'}")
    alone = len(a.parts) - len(b.parts)
    if alone:
        more, fewer = ("A", "B") if alone > 0 else ("B", "A")
        found.append(f"{units.count(abs(alone), 'kernel')} more in {more} than in {fewer}")
    return found


def _pairs(a: Shown, b: Shown) -> list[tuple[Part, Part]]:
    names = {part.name: part for part in b.parts}
    if {part.name for part in a.parts} <= set(names):
        return [(part, names[part.name]) for part in a.parts]
    return list(zip(a.parts, b.parts))


def _reports(a: Compiled | None, b: Compiled | None) -> Iterator[str]:
    if a is None or b is None:
        return
    for name in COUNTED:
        before, after = getattr(a, name), getattr(b, name)
        if before is not None and after is not None and before != after:
            yield f"{after - before:+,} {SAID[name]} ({before:,} -> {after:,})"
    shared = [(f.shared_bytes or 0) + (f.dynamic_shared_bytes or 0) for f in (a, b)]
    if shared[0] != shared[1]:
        yield f"shared memory {shared[0]:,} -> {shared[1]:,} bytes"
    for what in ("grid", "block"):
        before, after = getattr(a, what), getattr(b, what)
        if before and after and before != after:
            yield f"{what} {_size(before)} -> {_size(after)}"


def _size(sizes: tuple[int, int, int]) -> str:
    return "x".join(str(n) for n in sizes)


def _mixes(a: Shown, first: Part, b: Shown, second: Part) -> Iterator[str]:
    before, after = summary.mix_of(a, first), summary.mix_of(b, second)
    if before is None or after is None or before.of != after.of:
        return
    yield from _widths("loads", before.loads, after.loads)
    yield from _widths("stores", before.stores, after.stores)
    for what, x, y in _numbers(before, after):
        if x != y:
            yield f"{what} {x} -> {y}"


def _widths(what: str, a: dict[int, int], b: dict[int, int]) -> Iterator[str]:
    if a == b:
        return
    if len(a) == len(b) == 1 and [*a] != [*b]:
        yield f"{what} {max(a)} -> {max(b)} bit"
    else:
        yield f"{what} {summary.widths(a)} -> {summary.widths(b)}"


def _numbers(a: Mix, b: Mix) -> list[tuple[str, int, int]]:
    return [
        (f"{a.of} instructions", a.instructions, b.instructions),
        ("float64 instructions", len(a.doubles), len(b.doubles)),
        ("local memory accesses", a.local, b.local),
        ("conditional branches", a.branches, b.branches),
        ("loops", a.loops, b.loops),
    ]


def unified(a: Shown, b: Shown, level: str, names: tuple[str, str]) -> str:
    """A unified diff of a level's texts, without addresses and line numbers; empty if alike."""
    before, after = (_plain(shown, level).splitlines(keepends=True) for shown in (a, b))
    return "".join(difflib.unified_diff(before, after, *names))


def _plain(shown: Shown, level: str) -> str:
    texts = []
    for name, text in shown.of(level):
        for pattern in NOISE.get(level, ()):
            text = re.sub(pattern, "", text, flags=re.MULTILINE)
        texts.append((f"== {name}\n" if name else "") + text)
    return "\n".join(texts)
