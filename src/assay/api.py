"""`assay.check` and `assay.bench`: the two main verbs, for scripts, pytest and notebooks."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .cases import ALIASES, parse_values
from .errors import AssayError
from .op import Op
from .pipeline import run
from .request import Progress, Request
from .rows import RUNS, Run
from .session import Session
from .target import StopImport, Target, from_object, parse
from .types import Row, Scalar

if TYPE_CHECKING:
    from .mapping.model import CoverageMap
    from .simt.counts import Counts

ADAPT = ("like", "inputs", "fills", "kernelbench")
INSIDE = "ASSAY_CHILD"
"""Set in children: a script that is imported there must not start over."""


def check(target: str | Op | Target, **options: Any) -> list[Row]:
    """Judges every variant of a target on every case, and returns the rows; nothing is timed.

    target: what the command line takes (`softmax`, `file.py:name`), or an Op.
    options: `case` (a dict, or text such as "n=4096"), `dtypes`, `variants`, `device`, `arch`,
    `seed`, `slow`, `deadline` (seconds), `zoo` (hostile inputs too; True),
    `sanitize` (on a GPU, each kernel under compute-sanitizer's tools too); for a bare function
    `like`, `inputs`, `fills`; for a KernelBench pair `kernelbench`.

    Raises AssayError for a target or an option that can't be used.
    """
    return _run(target, timed=False, **{"zoo": True, **options})


def bench(target: str | Op | Target, **options: Any) -> list[Row]:
    """Judges, then times together what is right; returns the rows, as `check` does.

    Further options: `budget` (seconds of sampling a case), `quick`.
    """
    return _run(target, timed=True, **options)


def counts(
    target: str | Op | Target,
    variant: str,
    *,
    case: dict[str, Scalar] | str | None = None,
    arch: str = "",
) -> Counts:
    """What a variant's kernels do on one case, counted exactly while they run on the CPU.

    variant: as `-k` takes it, knobs included: "triton BLOCK=256". case: values that the case
    must have; the smallest such case is taken. arch: compiled for this (default sm_80; `cuda`
    sm_90). The counts are the same every time, so that a test can assert them:

        assert assay.counts("softmax", "cuda", case="n=1024").access("shared load").conflicts == 0

    Raises AssayError for a target, variant or case that there is not, NotRun for a kernel whose
    compiled code can't be run here.
    """
    from .counting import counted

    values = parse_values(case) if isinstance(case, str) else dict(case or {})
    return counted(_target(target), variant, values, arch).counts


def coverage_map(
    target: str | Op | Target,
    variant: str,
    *,
    case: dict[str, Scalar] | str | None = None,
    arch: str = "",
    stepped: bool = False,
) -> CoverageMap:
    """Who reads and writes which element in one call of a variant; needs no GPU.

    variant, case, arch: as in `counts`. stepped: in Triton's interpreter or Numba's simulator
    instead of the compiled code; what can't be run as compiled code is run there anyway.

        found = assay.coverage_map("softmax", "triton", case="rows=64 n=1025")
        assert not found.tensors["output 0"].never_written
        assert (found.tensors["x"].read_counts == 1).all()

    Raises AssayError for a target, variant or case that there is not, NotRun for what can't be
    run here.
    """
    from .mapping import mapped

    values = parse_values(case) if isinstance(case, str) else dict(case or {})
    return mapped(_target(target), variant, values, arch, stepped=stepped)


def _target(target: str | Op | Target, **adapt: Any) -> Target:
    """What the command line takes, or an object of a script or a cell, as a target."""
    if isinstance(target, str):
        return parse(target, **adapt)
    if isinstance(target, Target):
        return target
    return from_object(target, Path.cwd() / RUNS.parent / "cells")


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
    target = _target(target, **adapt)
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
            if isinstance(noun, Row):
                rows.append(noun)
    return rows
