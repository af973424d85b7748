"""Judging a file of the zoo, and what of it was not said as it must be."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..op import WAYS
from ..pipeline import run
from ..request import Progress, Request
from ..session import Session
from ..target import parse
from ..types import OUTCOMES, PASS, Row
from .zoo import Sample

SEED = 20_260
WRITTEN = tuple(f"{way}*" for way in WAYS if way != "compiled")
"""Every variant but `compiled`, which takes Inductor some seconds a case."""


@dataclass(frozen=True)
class Miss:
    """One thing that was not said of a kernel, or said of one that is right."""

    file: str
    label: str
    wanted: str
    got: str

    @property
    def text(self) -> str:
        return f"{self.file} {self.label}: wanted {self.wanted}; got {self.got}"


@dataclass(frozen=True)
class Score:
    """What became of one file's kernels."""

    sample: Sample
    rows: list[Row] = field(repr=False)
    misses: tuple[Miss, ...]

    @property
    def kernels(self) -> dict[str, str]:
        """What is to be said of each kernel: of a wrong file its wrong ones, else all written."""
        if self.sample.wrong:
            return {label: word for label, (word, _) in self.sample.expect.items()}
        return {f"{r.op} {r.label}": "right" for r in self.rows if r.variant != "eager"}

    @property
    def missed(self) -> set[str]:
        return {miss.label for miss in self.misses}


def judged(session: Session, sample: Sample) -> Score:
    """One file, judged by the real loop on the CPU with a seed that is always the same."""
    request = Request(
        (parse(str(sample.path)),),
        timed=False,
        device="cpu",
        seed=SEED,
        variants=WRITTEN,
        zoo=sample.hostile,
        **sample.options,
    )
    rows = [noun for noun in run(session, request, Progress()) if isinstance(noun, Row)]
    return Score(sample, rows, tuple(misses(sample, rows)))


def misses(sample: Sample, rows: list[Row]) -> list[Miss]:
    """Wrong kernels that were not named, right ones that were accused, findings not seen."""
    by_label: dict[str, list[Row]] = {}
    for row in rows:
        by_label.setdefault(f"{row.op} {row.label}", []).append(row)
    found, seen = [], set()
    for name, mine in by_label.items():
        label = name.split(" ", 1)[1]
        seen.add(label)
        found += (
            _unnamed(sample, label, mine)
            if label in sample.expect
            else _accused(sample, label if sample.wrong else name, mine)
        )
    found += [
        Miss(sample.name, label, word, "no row")
        for label, (word, _) in sample.expect.items()
        if label not in seen
    ]
    return found + _unseen(sample, rows)


def _unnamed(sample: Sample, label: str, rows: list[Row]) -> list[Miss]:
    """Nothing if every row has the word that is wanted; one row will do on hostile inputs."""
    word, part = sample.expect[label]
    right = [row.word == word and part in row.reason for row in rows]
    if any(right) if sample.hostile else all(right):
        return []
    bad = next(row for row, fits in zip(rows, right) if not fits)
    return [Miss(sample.name, label, f"{word}, {part!r}", _said(bad))]


def _accused(sample: Sample, label: str, rows: list[Row]) -> list[Miss]:
    """Rows of a right kernel that are no pass. A hostile input that asks nothing is no row."""
    asked = [row for row in rows if not (row.case.zoo and row.word == "not run")]
    bad = next((row for row in asked if OUTCOMES[row.word] != PASS), None)
    return [Miss(sample.name, label, "right", _said(bad))] if bad or not asked else []


def _unseen(sample: Sample, rows: list[Row]) -> list[Miss]:
    found = []
    for label, part in sample.finds.items():
        told = [row.verdict for row in rows if row.label == label]
        texts = [text for verdict in told if verdict for text in verdict.findings]
        if not any(part in text for text in texts):
            found.append(Miss(sample.name, label, f"the finding {part!r}", f"{texts}"))
    return found


def _said(row: Row | None) -> str:
    return f"{row.word}: {row.reason} ({row.case.label})" if row else "nothing but `not run`"
