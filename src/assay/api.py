"""`assay.check` and `assay.bench`: the two main verbs, for scripts, pytest and notebooks."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from .errors import AssayError
from .op import ALIASES, Op, parse_values
from .pipeline import Progress, Request, run
from .rows import RUNS, Run
from .session import Session
from .target import StopImport, Target, from_object, parse
from .types import Machine, Row

ADAPT = ("like", "inputs", "fills", "kernelbench")
INSIDE = "ASSAY_CHILD"
"""Set in children: a script that is imported there must not start over."""


def check(target: str | Op | Target, **options: Any) -> list[Row]:
    """Judges every variant of a target on every case, and returns the rows; nothing is timed.

    target: what the command line takes (`softmax`, `file.py:name`), or an Op.
    options: `case` (a dict, or text such as "n=4096"), `dtypes`, `variants`, `device`, `arch`,
    `seed`, `slow`, `deadline` (seconds); for a bare function `like`, `inputs`, `fills`; for a
    KernelBench pair `kernelbench`.

    Raises AssayError for a target or an option that can't be used.
    """
    return _run(target, timed=False, **options)


def bench(target: str | Op | Target, **options: Any) -> list[Row]:
    """Judges, then times together what is right; returns the rows, as `check` does.

    Further options: `budget` (seconds of sampling a case), `quick`.
    """
    return _run(target, timed=True, **options)


def _run(target: str | Op | Target, *, timed: bool, **options: Any) -> list[Row]:
    if os.environ.get(INSIDE):
        raise StopImport
    adapt = {k: options.pop(k) for k in ADAPT if k in options}
    if "inputs" in adapt:
        given = adapt["inputs"]
        adapt["inputs"] = (given,) if isinstance(given, str) else tuple(given)
    known = [f.name for f in fields(Request) if f.name not in ("targets", "timed")]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise AssayError(
            f"no option called {unknown[0]!r}; the options are {', '.join([*known, *ADAPT])}"
        )
    if adapt and not isinstance(target, str):
        raise AssayError(f"{next(iter(adapt))}= goes with a target 'file.py:name', not an object")
    if isinstance(target, str):
        target = parse(target, **adapt)
    elif not isinstance(target, Target):
        target = from_object(target, Path.cwd() / RUNS.parent / "cells")
    if isinstance(options.get("case"), str):
        options["case"] = parse_values(options["case"])
    for name in ("dtypes", "variants"):
        value = options.get(name, ())
        options[name] = (value,) if isinstance(value, str) else tuple(value)
    options["dtypes"] = tuple(ALIASES.get(d, d) for d in options["dtypes"])
    kept = Run()
    rows: list[Row] = []
    with Session(kept.folder / "logs") as session:
        for noun in run(session, Request((target,), timed=timed, **options), Progress()):
            kept.write(noun)
            if not isinstance(noun, Machine):
                rows.append(noun)
    return rows
