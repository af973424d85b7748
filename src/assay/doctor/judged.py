"""What a rule is made of: problems, notes, and questions that several rules ask. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from assay.doctor.facts import Facts, Finding
from assay.doctor.parse import numbers

Judged = Iterator[tuple[bool, Finding]]  # (is it a problem, what was found)
Fix = tuple[str, bool]  # (text, can it be pasted in a shell)

PIP = "python -m pip install"


def problem(id: str, what: str, fix: Fix | str) -> tuple[bool, Finding]:
    """Something that makes Assay fail or lie; a `fix` of plain text is a command."""
    text, command = (fix, True) if isinstance(fix, str) else fix
    return True, Finding(id=id, what=what, fix=text, command=command)


def note(id: str, what: str, fix: Fix | str = "") -> tuple[bool, Finding]:
    """Something worth knowing."""
    return False, problem(id, what, fix)[1]


def has_gpu(facts: Facts) -> bool:
    """Whether a GPU is seen by CUDA, or by the management library."""
    return bool(facts.cuda.devices or facts.management.boards)


def driver_cuda(facts: Facts) -> str:
    """The newest CUDA that the driver takes, such as "13.0"; "" if there is no driver."""
    return facts.cuda.version or facts.management.cuda


def two(version: str) -> tuple[int, ...]:
    """(major, minor) of a version, or () if it has no two numbers."""
    found = numbers(version)[:2]
    return found if len(found) == 2 else ()
