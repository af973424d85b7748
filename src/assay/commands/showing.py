"""`assay show`: what compilers make of a kernel, level by level, with no GPU."""

from __future__ import annotations

import fnmatch
import importlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from .. import ways
from ..cases import parse_values
from ..errors import AssayError, NotRun
from ..inside import artifacts
from ..inside.artifacts import beside, differing, levels, summary
from ..inside.artifacts.levels import COMPILED, LEVELS
from ..inside.artifacts.model import Shown
from ..inside.artifacts.sides import resolved
from ..op import WAYS
from ..pipeline import describe
from ..session import Session
from ..target import Target, parse
from ..types import Scalar
from . import beginning

VIEWS = {
    "summary": "assay.inside.artifacts.summary:text",
    "beside": "assay.inside.artifacts.beside:both",
    "geometry": "assay.inside.geometry.shown:text",
}
"""What can be asked for as a level and is computed: a function of a `Shown` that gives text."""
INLINE = (
    "Triton counts on within its inline assembly: what belongs to a masked load may stand at lines "
    "below it"
)


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    level: str = "summary"
    case: str = ""
    arch: str = ways.DEFAULT_ARCH
    source: bool = False
    as_json: bool = False
    bare: tuple[tuple[str, Any], ...] = ()
    """`--like`, `--input` and `--fills`: what a bare function computes."""

    def parse(self, target: str) -> Target:
        """The target, a bare function with what it computes."""
        return parse(target, **dict(self.bare))

    @property
    def values(self) -> dict[str, Scalar]:
        return parse_values(self.case) if self.case else {}


def show(session: Session, target: str, only: list[str], request: Request) -> int:
    """Prints a level of each variant; exit code 0, 3 if there is nothing of any."""
    levels.check(request.level, tuple(VIEWS))
    done = False
    parsed = request.parse(target)
    for variant in _variants(session, parsed, only):
        try:
            _print(_shown(session, parsed, variant, request), request)
            done = True
        except NotRun as reason:
            print(f"assay: {variant}: not shown: {reason}", file=sys.stderr)
    return 0 if done else 3


def _shown(session: Session, target: Target, variant: str, request: Request) -> Shown:
    return artifacts.shown(session, target, variant, request.values, request.arch)


def _variants(session: Session, target: Target, only: list[str]) -> list[str]:
    """Names of the variants meant, with their knobs if any were said. Raises AssayError."""
    if only and all("/" in name and not set(name) & set("*?[") for name in only):
        return only
    ops = describe(session, target)
    if len(ops) > 1:
        names = ", ".join(op.name for op in ops)
        raise AssayError(f"{target.text}: it holds {names}; name one: {target.text}:{ops[0].name}")
    known = [v.name for v in ops[0].variants if v.way in COMPILED]
    if not only:
        return known
    found = []
    for given in only:
        name, *knobs = given.split(maxsplit=1)
        fit = [n for n in known if n == name] or [
            n for n in known if n.split("/")[0] == name or fnmatch.fnmatchcase(n, name)
        ]
        if not fit:
            why = f"nothing is compiled of {name}" if name in WAYS else f"no variant {name!r}"
            raise AssayError(f"{ops[0].name}: {why}; there are {', '.join(known)}")
        found += [" ".join([n, *knobs]) for n in fit]
    return list(dict.fromkeys(found))


def _print(shown: Shown, request: Request) -> None:
    if request.as_json:
        print(msgspec.json.encode(shown).decode())
        return
    if request.source:
        level = "sass" if request.level == "summary" else request.level
        width = shutil.get_terminal_size().columns
        print(summary.head(shown))
        if shown.way in ("triton", "compiled"):
            print(INLINE)
        for part in shown.parts:
            if part.entry:
                print("\n" + beside.text(shown, part, level, width))
    elif request.level in VIEWS:
        module, _, function = VIEWS[request.level].partition(":")
        print(getattr(importlib.import_module(module), function)(shown))
    else:
        _level(shown, request.level)
        return
    for note in shown.notes:
        print(f"note: {note}")
    print()


def _level(shown: Shown, name: str) -> None:
    """Raises NotRun where there is no text of it."""
    texts, sign = shown.of(name), LEVELS[name].comment
    if not texts:
        reason = shown.why_not(name)
        if not reason and shown.way not in LEVELS[name].ways:
            reason = f"{shown.way} has no such level: it has {', '.join(_levels(shown.way))}"
        raise NotRun(f"{name}: {reason or 'its compiler left none'}")
    for kernel, text in texts:
        named = f"  {kernel}" if kernel else ""
        print(f"{sign} {LEVELS[name].what}")
        print(f"{sign} {shown.op}  {shown.label}  {shown.case}  {shown.arch}{named}")
        print(text.rstrip("\n"))


def _levels(way: str) -> Iterator[str]:
    return (level.name for level in LEVELS.values() if way in level.ways)


def diff(
    session: Session, target: str, only: list[str], sides: tuple[str, str], request: Request
) -> int:
    """Prints what is other in B; exit code 0 if nothing of the level is, 1 if something is, 3 if
    one of them can't be shown."""
    levels.check(request.level, tuple(VIEWS))
    try:
        with ExitStack() as stack:
            a, b = (
                _shown(session, side.target, side.variant, request)
                for side in resolved(stack, target, only, sides)
            )
    except NotRun as reason:
        print(f"assay: not compared: {reason}", file=sys.stderr)
        return 3
    print(f"A  {sides[0]}: {a.op}  {a.label}  {a.case}\nB  {sides[1]}: {b.op}  {b.label}  {b.case}")
    print(f"compiled for {a.arch}, not run\n")
    for line in differing.changes(a, b):
        print(line)
    level = request.level
    if level in VIEWS:
        level = next((n for n in ("sass", "ptx", "asm") if a.of(n) and b.of(n)), "log")
    found = differing.unified(a, b, level, sides)
    print(f"\n{found}" if found else f"\nnothing of the {level} differs")
    return 1 if found else 0


def _bare(given: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if given["like"]:
        yield "like", given["like"]
        yield "inputs", tuple(given["inputs"] or ())
        yield "fills", given["fills"]
    elif given["inputs"] or given["fills"]:
        raise AssayError("--input and --fills go with --like, or --input with --from-compiled")


def command(given: dict[str, Any]) -> int:
    """As the command line calls it, with its options by name. Raises AssayError."""
    only, target = list(given["only"] or ()), given["target"]
    if given["from_compiled"]:
        inputs, case = list(given["inputs"] or ()), given["case"] or ""
        return beginning.from_compiled(target, inputs, case, given["arch"], given["to"])
    if given["fork"]:
        return beginning.fork(target, only, given["fork"])
    if given["lineage"]:
        return beginning.show(target, only)
    request = Request(
        given["level"],
        given["case"] or "",
        given["arch"] or ways.DEFAULT_ARCH,
        given["source"],
        given["as_json"],
        tuple(_bare(given)),
    )
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        if given["diff"]:
            return diff(session, target, only, tuple(given["diff"]), request)
        return show(session, target, only, request)
