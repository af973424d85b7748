"""What the parent asks of a timing process. Imports no torch: the parent has none."""

from __future__ import annotations

from typing import Any

import msgspec

from ..target import Target
from ..types import Case
from ..verdict.protocol import Spec


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel to time."""

    variant: str
    knobs: dict[str, Any]
    judge: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule."""

    target: Target
    op: str
    case: Case
    specs: tuple[Spec, ...]
    entries: tuple[Entry, ...]
    device: str
    arch: str
    seed: int
    seconds: float
    """How long sampling may take, in all."""
    threads: int
    scratch: str
    state: str
    llc_bytes: int


SHORT_SECONDS, SHORT_WINDOWS = 20e-6, 5
"""A shorter kernel is read so often a sample: its windows come in modes 0.2 us apart."""


def windows_for(seconds: float) -> int:
    """Windows a sample is the mean of, for a kernel that takes about so long."""
    return SHORT_WINDOWS if seconds < SHORT_SECONDS else 1
