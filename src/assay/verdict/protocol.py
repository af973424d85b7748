"""What passes between the parent, a candidate and the oracle. Without torch, as the parent."""

from __future__ import annotations

from typing import Any

import msgspec

from ..target import Target
from ..types import Case, Fault

POISONS = (0xFF, 0x7B)
"""0xFF.. is NaN in every float format and -1 in every integer; 0x7B.. is large and finite."""


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """Shape and dtype of an output, as the oracle worked them out."""

    shape: tuple[int, ...]
    dtype: str


class Shipped(msgspec.Struct, frozen=True, kw_only=True):
    """Where the bytes of one tensor lie, and how to read them."""

    path: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    device: str
    offset: int
    """Bytes before the first element."""
    fenced: bool
    """Whether its block has a guard of poison at either end."""
    exact: bool = False
    """Whether it fills its block, so that holes in its layout belong to nobody."""
    shares: str = ""
    """Name of an input, or of an earlier output, in whose memory it lies."""
    kept: bool = False
    """Whether it lies in the memory of an output of an earlier call."""
    kind: str = "tensor"
    """Anything else is a type that is no plain dense tensor."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a candidate: its tensors afterwards."""

    seed: int
    poison: int
    outputs: tuple[Shipped, ...]
    inputs: tuple[tuple[int, Shipped], ...] = ()
    """Position and bytes of each tensor among the inputs."""
    scratch: tuple[tuple[int, int], ...] = ()
    """Values changed before and after each tensor that the kernel allocated and did not return."""
    faults: tuple[Fault, ...] = ()
    """What was seen while its compiled code was watched."""
    late: str = ""
    """What was still going on when the call returned; empty if nothing was."""
    different: int = 1
    """Results that differ in some bit, among `repeats` runs with the same inputs."""
    repeats: int = 1
    unlike_idle: bool = False
    """Whether it differs, behind a busy stream, from what an idle GPU gives again and again."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One set of knobs on one case."""

    case: Case
    knobs: dict[str, Any]
    specs: tuple[Spec, ...]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same for all tasks of a child."""

    target: Target
    op: str
    variant: str
    judge: str
    """Where kernels run; empty: they are only compiled, and `why` says so."""
    device: str
    arch: str
    seed: int
    budget: float
    """Seconds that an interpreter or simulator may take for a case; 0 for no limit."""
    threads: int
    scratch: str
    drop_barriers: bool = False
    """Whether each barrier of a right kernel is left out in turn."""
    why: str = ""


def runs_of(seed: int) -> tuple[tuple[int, int], ...]:
    """Seed and poison of each run of a task: two that differ in both, and the first once more."""
    return (seed, POISONS[0]), (seed + 1, POISONS[1]), (seed, POISONS[0])
