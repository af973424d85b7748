"""Lines of source with the instructions that each became; PTX beside SASS."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import AssayError, NotRun
from ...simt import parse as ptx_parser
from ...simt.ptx import Instruction as PtxInstruction
from ...simt.ptx import Place
from . import sass
from .model import Part, Shown

LEVELS = ("sass", "ptx")
GAP = 2
MOST = 52
"""Columns of PTX; what is longer moves its SASS to the right."""


@dataclass(frozen=True)
class Line:
    """A line of source and its instructions, in the order in which they stand."""

    place: Place | None
    source: str
    instructions: tuple[str, ...]


def text(shown: Shown, part: Part, level: str, width: int) -> str:
    """Both columns, file by file. Raises NotRun where a level has no lines, with the reason."""
    lines = of(shown, part, level)
    left = max(24, min(max((len(_left(line)) for line in lines), default=0), width * 2 // 5))
    made, file = [f"{part.name}: source and {level.upper()}"], None
    for line in lines:
        if line.place is None or line.place.file != file:
            file = line.place.file if line.place else None
            made += ["", file or "without a line of source"]
        shown_left = _cut(_left(line), left)
        for index, instruction in enumerate(line.instructions):
            cell = shown_left if not index else ""
            made.append(f"{cell:<{left}}{' ' * GAP}{instruction}".rstrip())
    return "\n".join(made)


def both(shown: Shown) -> str:
    """PTX in the left column, SASS in the right, line by line of the source, for every kernel.

    Raises NotRun where one of them has no lines, with the reason.
    """
    made = [f"{shown.op}  {shown.label}  {shown.case}\ncompiled for {shown.arch}, not run"]
    for part in shown.parts:
        if not part.entry:
            continue
        ptx, sass_ = ({one.place: one for one in of(shown, part, n)} for n in ("ptx", "sass"))
        width = max((len(text) for one in ptx.values() for text in one.instructions), default=0)
        made += ["", f"{part.name}: PTX and SASS"]
        for place in (*ptx, *(p for p in sass_ if p not in ptx)):
            source = (ptx.get(place) or sass_[place]).source
            made.append(f"\n{place or 'without a line of source'}  {source}".rstrip())
            pair = [one[place].instructions if place in one else () for one in (ptx, sass_)]
            for left, right in itertools.zip_longest(*pair, fillvalue=""):
                made.append(f"  {left:<{min(width, MOST)}}{' ' * GAP}{right}".rstrip())
    return "\n".join(made)


def _left(line: Line) -> str:
    return f"{line.place.line:>5}  {line.source}" if line.place else ""


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def of(shown: Shown, part: Part, level: str) -> list[Line]:
    """By file and line; those of the file that most come from first. Raises AssayError, NotRun."""
    if level not in LEVELS:
        raise AssayError(f"--source with --level {level}: say one of {', '.join(LEVELS)}")
    code = _sass(part) if level == "sass" else _ptx(shown, part)
    if not code:
        reason = part.absent.get(level) or shown.absent.get(level) or "there is none"
        raise NotRun(f"{part.name} beside its {level}: {reason}")
    main = Counter(places[-1].file for places, _ in code if places).most_common(1)
    file = main[0][0] if main else ""
    grouped: dict[Place | None, list[str]] = defaultdict(list)
    for places, instruction in code:
        grouped[_chosen(places, file)].append(instruction)

    def order(place: Place | None) -> tuple[bool, bool, str, int]:
        return (place is None, place is not None and place.file != file, *_key(place))

    return [Line(p, _source(p), tuple(grouped[p])) for p in sorted(grouped, key=order)]


def _key(place: Place | None) -> tuple[str, int]:
    return (place.file, place.line) if place else ("", 0)


def _sass(part: Part) -> list[tuple[tuple[Place, ...], str]]:
    code = sass.parse(part.texts.get("sass", ""))
    return [(one.places, re.sub(r"\s+", " ", one.text.rstrip(" ;"))) for one in code]


def _ptx(shown: Shown, part: Part) -> list[tuple[tuple[Place, ...], str]]:
    module = part.texts.get("ptx") or shown.texts.get("ptx", "")
    if not module or not part.entry:
        return []
    body = ptx_parser.parse(module).functions[part.entry].body
    return [
        (one.places, re.sub(r"\s+", " ", one.text.strip().rstrip(" ;")))
        for one in body
        if isinstance(one, PtxInstruction)
    ]


def _chosen(places: Sequence[Place], main: str) -> Place | None:
    """The innermost line in the kernel's own file; what helpers did belongs to who called them."""
    return next((place for place in places if place.file == main), places[0] if places else None)


def _source(place: Place | None) -> str:
    """The line, if its file is still there."""
    if place is None or not place.line or not Path(place.file).is_file():
        return ""
    lines = Path(place.file).read_text(errors="replace").splitlines()
    return lines[place.line - 1].strip() if place.line <= len(lines) else ""
