"""Where a version of a kernel comes from, and how its ancestors did in the runs that are kept.

A file says its ancestors in `LINEAGE`, a list of (hash of the source, what it was), the parent
first. Rows carry the same hash, so verdict and speed of each version are found again.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import AssayError, RowsError
from ..rows import RUNS, read
from ..types import ABSENT, FAIL, NO_EVIDENCE, PASS, Row

NAME = "LINEAGE"
HASH = 16
"""Characters of a source's hash in rows."""
ORIGIN = "torch.compile of "
"""What the first of the ancestors is called: its rows are those of `compiled`."""
SEVERITY = (FAIL, NO_EVIDENCE, PASS)


@dataclass(frozen=True)
class Version:
    """One version: hash of its source, and what it was."""

    hash: str
    what: str


@dataclass(frozen=True)
class Seen:
    """What the runs say of a version."""

    version: Version
    rows: int = 0
    verdict: str = ""
    """The worst word of the last run that has it; empty: no run has."""
    seconds: float | None = None
    """Median of its slowest case in the last run that timed it."""
    case: str = ""
    """That case."""
    against: float | None = None
    """Time of `compiled` over its own, in the same schedule: above 1 it is faster."""
    time: str = ""
    """When the last of its rows was made."""


def ancestors(path: Path) -> tuple[Version, ...]:
    """What a file says of itself, the parent first; empty if it says nothing.

    Raises AssayError for a list that can't be read.
    """
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == NAME:
            try:
                return tuple(Version(*map(str, pair)) for pair in ast.literal_eval(node.value))
            except (TypeError, ValueError):
                raise AssayError(
                    f"{path}:{node.lineno}: {NAME} is a list of (hash, what it was)"
                ) from None
    return ()


def forked(path: Path, hash_: str) -> str:
    """A file's text as a new version of it: its own hash is the first of the ancestors.

    Raises AssayError if the file has no LINEAGE.
    """
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == NAME:
            assert node.end_lineno is not None
            known = [Version(hash_, path.name), *ancestors(path)]
            entries = [f"    ({json.dumps(v.hash)}, {json.dumps(v.what)}),\n" for v in known]
            note = "    # (hash of the source, as rows have it; what it was), the parent first\n"
            made = [f"{NAME} = [\n", note, *entries, "]\n"]
            return "".join([*lines[: node.lineno - 1], *made, *lines[node.end_lineno :]])
    raise AssayError(
        f"forking {path}: it has no {NAME}; write {NAME} = [] where it may stand, then fork again"
    )


def hash_of(path: Path) -> str:
    """Hash of a file that is a variant's only source, as rows have it."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return hashlib.sha256(digest.encode()).hexdigest()[:HASH]


def edited(versions: Sequence[Version], folder: Path) -> dict[str, str]:
    """Hash of a version to the lines that it adds to and takes from the one before: `+3 -1 lines`.

    Only where both are files in the folder that still have their hashes.
    """
    texts = {}
    for version in versions:
        path = folder / version.what
        if path.suffix == ".py" and path.is_file() and hash_of(path) == version.hash:
            texts[version.hash] = path.read_text().splitlines()
    found = {}
    for before, after in itertools.pairwise(versions):
        if before.hash in texts and after.hash in texts:
            lines = list(difflib.ndiff(texts[before.hash], texts[after.hash]))
            more, fewer = (sum(line.startswith(sign) for line in lines) for sign in "+-")
            found[after.hash] = f"+{more} -{fewer} lines"
    return found


@dataclass(frozen=True)
class History:
    """Every row of the runs below a folder, oldest run first."""

    rows: tuple[tuple[str, Row], ...]
    """With the name of its run."""
    unread: tuple[str, ...]
    """Why a run, or the rest of it, could not be read."""


def history(root: Path) -> History:
    """The runs that are kept in `root/.assay/runs`."""
    rows: list[tuple[str, Row]] = []
    unread = []
    for path in sorted((root / RUNS).glob("*/rows.jsonl")):
        try:
            for noun in read(path):
                if isinstance(noun, Row):
                    rows.append((path.parent.name, noun))
        except RowsError as error:
            unread.append(str(error))
    return History(tuple(rows), tuple(unread))


def table(kept: History, op: str, way: str, versions: Sequence[Version]) -> list[Seen]:
    """What the runs say of each version, in the order given."""
    return [_seen(kept, version, op, way) for version in versions]


def edits(kept: History, op: str, way: str, known: Iterable[Version]) -> list[Version]:
    """Versions that runs have and that are not known: states of a file between edits, by time."""
    hashes = {version.hash for version in known}
    first: dict[str, str] = {}
    for _, row in kept.rows:
        if row.op == op and row.way == way and row.source_hash not in hashes:
            first.setdefault(row.source_hash, row.time)
    return [Version(hash_, f"as it was on {time[:16]}") for hash_, time in first.items() if hash_]


def _seen(kept: History, version: Version, op: str, way: str) -> Seen:
    """Of the last run that judged it, the worst word; of the last that timed it, the time."""
    wanted = "compiled" if version.what.startswith(ORIGIN) else way
    own = [
        (run, row)
        for run, row in kept.rows
        if (row.op, row.source_hash, row.way) == (op, version.hash, wanted)
    ]
    judged = [(run, row) for run, row in own if row.outcome != ABSENT]
    if not judged:
        return Seen(version, len(own))
    of_last = [row for run, row in judged if run == judged[-1][0]]
    worst = min(of_last, key=lambda row: SEVERITY.index(row.outcome))
    seen = Seen(version, len(own), worst.word, time=of_last[-1].time)
    timed = [(run, row) for run, row in judged if row.timing is not None]
    if not timed:
        return seen
    last = [row for run, row in timed if run == timed[-1][0]]
    slowest = max(last, key=lambda row: row.timing.median if row.timing else 0.0)
    assert slowest.timing is not None
    against = None if wanted == "compiled" else _against(kept, slowest)
    case, median = slowest.case.label, slowest.timing.median
    return replace(seen, seconds=median, case=case, against=against)


def _against(kept: History, row: Row) -> float | None:
    """Time of `compiled` over that of a row, if both were in one schedule: no ratio otherwise."""
    assert row.timing is not None
    for _, other in kept.rows:
        timing = other.timing if other.way == "compiled" and other.case == row.case else None
        if timing is not None and timing.schedule == row.timing.schedule:
            return timing.median / row.timing.median
    return None
