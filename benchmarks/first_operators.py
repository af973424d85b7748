"""Builds, checks and times square and softmax in every way, and keeps the rows.

`make bench`, or `python benchmarks/first_operators.py [--quick]`. Rows go to
benchmarks/results/<card>/first_operators.jsonl: the raw samples, and the machine they belong to.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rich.console import Console

from assay.pipeline import run
from assay.report import table
from assay.request import Progress, Request
from assay.rows import Run, encode
from assay.session import Session
from assay.target import parse
from assay.types import Machine, Row, replace

RESULTS = Path(__file__).parent / "results"
OPERATORS = ("square", "softmax")


def main() -> None:
    """Runs all of it; exits 1 if a kernel failed."""
    kept = Run()
    rows: list[Row] = []
    machine: Machine | None = None
    request = Request(tuple(parse(op) for op in OPERATORS), quick="--quick" in sys.argv)
    with Session(kept.folder / "logs") as session:
        for noun in run(session, request, Progress()):
            kept.write(noun)
            if isinstance(noun, Machine):
                machine = noun
            elif isinstance(noun, Row):
                rows.append(noun)
    assert machine is not None
    table.show(Console(highlight=False), rows, machine, timed=True)
    folder = RESULTS / card(machine)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [encode(published(noun)) for noun in (machine, *rows)]
    (folder / "first_operators.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    print(f"rows: {folder / 'first_operators.jsonl'}")
    raise SystemExit(any(row.outcome == "fail" for row in rows))


def published(noun: Row | Machine) -> Row | Machine:
    """A noun without compilers' logs, which hold the paths of this machine and nothing measured."""
    if isinstance(noun, Machine) or noun.build is None:
        return noun
    return replace(noun, build=replace(noun.build, log=""))


def card(machine: Machine) -> str:
    """The folder of a machine's results: its GPU's name, else its CPU's."""
    return folder_of(machine.gpus[0].name if machine.gpus else machine.cpu)


def folder_of(name: str) -> str:
    """The folder of a GPU's or CPU's results, by its name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


if __name__ == "__main__":
    main()
