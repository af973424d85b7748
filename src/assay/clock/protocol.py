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


STATES = ("cold", "dirty", "hot", "rotated")
"""`cold`: refilled by reads, so that reads miss and no write-back is owed. `dirty`: by writes, as
most clocks do: a kernel then pays for writing back up to a cacheful. `rotated`: `sets_for`."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a user may ask of timing beyond the usual."""

    cache: str = ""
    """One of STATES; empty: what is usual on the device."""
    sustained: float = 0.0
    """Seconds for which each kernel on a GPU runs on and on at the end; 0: not at all."""
    period: bool = False
    """Whether each is captured in CUDA graphs at the end."""


USUAL = Wish()


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
    wish: Wish
    owner: int
    """The process that all of this run descend from."""


SHORT_SECONDS, SHORT_WINDOWS = 20e-6, 5
"""A shorter kernel is read so often a sample: its windows come in modes 0.2 us apart."""


def windows_for(seconds: float) -> int:
    """Windows a sample is the mean of, for a kernel that takes about so long."""
    return SHORT_WINDOWS if seconds < SHORT_SECONDS else 1
