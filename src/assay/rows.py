"""Rows as JSON Lines: lossless, versioned, in runs that are never overwritten.

NaN and the infinities, which JSON lacks, are written `{"$float": "nan"}`; names of knobs and case
values are identifiers, so nothing else can look like that. -0.0 is plain JSON.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from .errors import RowsError
from .types import SCHEMA, Machine, Roofs, Row, Strength

RUNS = Path(".assay") / "runs"
NOUNS = Row | Machine | Strength | Roofs
"""What a line can hold, told apart by its `kind`."""
FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""What JSON lacks, by the name under `$float`."""


def encode(noun: msgspec.Struct) -> bytes:
    """One noun as one line of JSON, without the newline."""
    return msgspec.json.encode(_floats_out(msgspec.to_builtins(noun)))


def decode(line: bytes | str, kind: Any = NOUNS, where: str = "this line") -> Any:
    """The noun that `encode` wrote. Raises RowsError, naming `where`, for anything else."""
    try:
        raw = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RowsError(
            f"reading {where}: it is not whole JSON ({error}); "
            "a run that was cut off can lose its last line: delete that line and read again"
        ) from None
    version = raw.get("schema", SCHEMA) if isinstance(raw, dict) else SCHEMA
    if not isinstance(version, int) or not 1 <= version <= SCHEMA:
        raise RowsError(
            f"reading {where}: it has row schema {version!r}, and this assay reads 1 to {SCHEMA}; "
            "upgrade assay, or read the file with the version that wrote it"
        )
    try:
        return msgspec.convert(_floats_in(raw), kind)
    except (msgspec.ValidationError, KeyError) as error:
        raise RowsError(
            f"reading {where}: it is no row of schema {version} ({error}); was it edited by hand?"
        ) from None


def schema() -> dict[str, Any]:
    """The published JSON Schema of a line: a Row, a Machine, a Strength or Roofs."""
    made = msgspec.json.schema(NOUNS)
    special = {
        "type": "object",
        "properties": {"$float": {"enum": ["nan", "inf", "-inf"]}},
        "required": ["$float"],
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Assay row, schema {SCHEMA}",
        **_allow(made, special),
    }


def _floats_out(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if isinstance(value, dict):
        return {name: _floats_out(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_floats_out(item) for item in value]
    return value


def _floats_in(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"$float"}:
            return FLOATS[value["$float"]]
        return {name: _floats_in(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_floats_in(item) for item in value]
    return value


def _allow(node: Any, special: dict[str, Any]) -> Any:
    """The schema with `special` allowed wherever a number is."""
    if isinstance(node, list):
        return [_allow(item, special) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "number":
        return {"anyOf": [node, special]}
    return {name: _allow(item, special) for name, item in node.items()}


def home(root: Path | None = None) -> Path:
    """The folder `.assay` of a project, made if need be, with its files out of git's sight."""
    made = (root or Path.cwd()) / RUNS.parent
    made.mkdir(parents=True, exist_ok=True)
    ignore = made / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    return made


class Run:
    """One run's file: a machine line, then rows, each written as soon as it is known."""

    def __init__(self, root: Path | None = None):
        self.root = home(root) / RUNS.name
        self.root.mkdir(exist_ok=True)
        self.folder = self._fresh()
        self.path = self.folder / "rows.jsonl"
        self.path.touch()
        self._machines: set[str] = set()

    def _fresh(self) -> Path:
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d-%H%M%S")
        for number in range(1000):
            folder = self.root / (stamp if number == 0 else f"{stamp}-{number:03d}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
        raise RowsError(f"making a run in {self.root}: 1000 runs began in this second; clear some")

    def write(self, noun: Row | Machine | Strength | Roofs) -> None:
        """Appends one line in one write, so that a cut-off run keeps whole lines."""
        if isinstance(noun, Machine):
            if noun.id in self._machines:
                return
            self._machines.add(noun.id)
        with open(self.path, "ab", buffering=0) as file:
            file.write(encode(noun) + b"\n")


def read(path: str | os.PathLike[str]) -> Iterator[Row | Machine | Strength | Roofs]:
    """Every noun of a rows file. Raises RowsError with the file and line of a fault."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise RowsError(f"reading rows from {path}: {error.strerror}; give a rows.jsonl") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield decode(line, where=f"{path}, line {number}")


def find_run(name: str = "last", root: Path | None = None) -> Path:
    """The rows of a run: `last`, `last~1`, the name of its folder, or a path.

    A run that ended before its first line does not count. Raises RowsError if there is none.
    """
    if Path(name).is_file():
        return Path(name)
    runs = (root or Path.cwd()) / RUNS
    held = sorted(p.parent for p in runs.glob("*/rows.jsonl") if p.stat().st_size)
    back = re.fullmatch(r"last(?:~(\d+))?", name)
    if back and int(back[1] or 0) < len(held):
        return held[-1 - int(back[1] or 0)] / "rows.jsonl"
    if name and (runs / name / "rows.jsonl").is_file():
        return runs / name / "rows.jsonl"
    raise RowsError(f"looking for run {name!r}: {runs} holds {len(held)} runs; bench first")


def main() -> None:
    """Prints the JSON Schema: `python -m assay.rows > docs/schema/row-1.json`."""
    print(json.dumps(schema(), indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
