"""`assay check --sanitize`: compute-sanitizer's four tools on each kernel, as its verdict.

The parent's side: it starts no CUDA and imports no torch. A right kernel, or one that died, wrote
outside or differs from run to run, is run once more under each tool; what a tool finds becomes the
verdict. What could not be looked at is said, with the reason: a row never passes for sanitized
that was not.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..session import Session
from ..types import OUTCOMES, Fault, Row, Verdict, replace
from ..verdict.asking import Conditions, Oracle
from ..verdict.protocol import Spec
from ..verdict.watched import ADVICE
from . import report, tool
from .job import SanitizeJob

LOADING_SECONDS = 120.0
SLOWER = 20.0
"""Under a tool a kernel may take so many times its deadline."""
ASKED = (
    "right",
    *("crashed", "wrote outside", "read outside", "not written", "wrong value"),
    *("not the same twice", "unfinished"),
)
"""Verdicts that a tool may overturn, or give the place of."""
WITH_KERNELS = ("cuda", "triton", "extension", "numba", "python")
"""Ways whose variants launch kernels that the user wrote, or may."""
ORDER = (
    "wrote outside",
    "read outside",
    "crashed",
    "read before written",
    "race",
    "divergent barrier",
)


@dataclass(frozen=True)
class Sanitizer:
    """Asks the tools about rows of one Op."""

    session: Session
    conditions: Conditions
    oracle: Oracle
    why_not: str
    """Why nothing can be sanitized here, and what mends it; empty: it can."""
    program: str
    note: Callable[[str], None] = lambda text: None

    def row(self, row: Row) -> Row:
        """The row with what the tools found. Wrong values have their own verdict.

        A hostile case is asked about only where the kernel died on it: there are fifty of them.
        """
        if row.word not in ASKED or (row.case.zoo and row.word == "right"):
            return row
        if row.way not in WITH_KERNELS:
            return _noted(row, f"not sanitized: {row.way} has no GPU kernel of the user's own")
        if self.why_not:
            return _noted(row, f"not sanitized: {self.why_not}")
        if not row.device.startswith("cuda"):
            return _noted(row, f"not sanitized: it ran on {row.device}")
        folder = self.session.folder()
        try:
            return self._asked(row, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _asked(self, row: Row, folder: Path) -> Row:
        job = self._job(row)
        seconds = LOADING_SECONDS + SLOWER * self.conditions.deadline
        reports = []
        for name in report.TOOLS:
            what = f"{name} {row.op} {row.label} {row.case.label}"
            self.note(what)
            reports.append(
                tool.run(self.program, name, job, folder, seconds, self.session.stopped.is_set)
            )
            if (folder / f"{name}.log").is_file():
                shutil.copyfile(folder / f"{name}.log", self.session.log(what))
        return told(row, reports)

    def _job(self, row: Row) -> SanitizeJob:
        specs = self.oracle.specs(row.case, self.conditions.seed)
        return SanitizeJob(
            target=self.conditions.target,
            op=row.op,
            variant=row.variant,
            knobs=row.knobs,
            case=row.case,
            specs=tuple(msgspec.convert(spec, Spec) for spec in specs),
            seed=self.conditions.seed,
            device=self.conditions.device,
            arch=self.conditions.arch,
        )


def reason_not_to(device: str, no_gpu: str, program: str) -> str:
    """Why nothing can be sanitized, with what mends it; empty if it can."""
    if not device.startswith("cuda"):
        why = no_gpu or f"the device is {device}"
        return f"no GPU: {why}; run it on a machine with an NVIDIA GPU and --device cuda"
    if not program:
        return f"there is no {tool.NAME}: {tool.FIX}"
    return ""


def told(row: Row, reports: list[report.Report]) -> Row:
    """The row with a verdict made of the tools' reports."""
    found = sorted((f for one in reports for f in one.found), key=lambda f: ORDER.index(f.word))
    notes = _notes(reports)
    if not found:
        for note in notes:
            row = _noted(row, note)
        return row
    first, faults = found[0], tuple(f.fault for f in found)
    which = next(one.tool for one in reports if first in one.found)
    detail = f"{_where(first.fault)}{first.fault.text}{_more(first.fault)}, says {which}"
    if row.word != "right":
        detail += f"; {row.reason}"
    known = row.verdict or Verdict(word=row.word, judge=row.device)
    verdict = replace(
        known,
        word=first.word,
        detail=detail,
        advice=ADVICE.get(first.word, ""),
        faults=faults,
        findings=(*known.findings, *notes),
    )
    return replace(
        row,
        word=first.word,
        outcome=OUTCOMES[first.word],
        reason=detail,
        verdict=verdict,
        not_timed="",
    )


def _where(fault: Fault) -> str:
    return f"{fault.file}:{fault.line}: " if fault.file else ""


def _more(fault: Fault) -> str:
    others = f" (and {fault.count - 1:,} more reports)" if fault.count > 1 else ""
    return others + (f"; the other one: {fault.other}" if fault.other else "")


def _notes(reports: list[report.Report]) -> list[str]:
    """What every tool that looked says, what none could, and what was left out."""
    whole = [one.tool for one in reports if not one.problem]
    notes = [f"sanitized: {', '.join(whole)}"] if whole else []
    notes += [f"not sanitized: {one.problem}" for one in reports if one.problem]
    left = dict.fromkeys(name for one in reports for name in one.excluded)
    if left:
        notes.append(f"reports on library kernels left out: {', '.join(left)}")
    return notes


def _noted(row: Row, note: str) -> Row:
    """The row with a finding; where it has no verdict, its reason says it."""
    if row.verdict is None:
        return replace(row, reason=f"{row.reason}; {note}" if row.reason else note)
    verdict = replace(row.verdict, findings=(*row.verdict.findings, note))
    return replace(row, verdict=verdict)
