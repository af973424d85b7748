"""What a user asked for, whom to tell how far it is, and what a target is then judged under."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from .clock.protocol import USUAL, Wish
from .errors import AssayError
from .machine import cores
from .target import Target
from .types import Machine, Scalar
from .verdict.asking import Conditions
from .ways import DEFAULT_ARCH


@dataclass(frozen=True)
class Request:
    """What a user asked for."""

    targets: tuple[Target, ...]
    timed: bool = True
    device: str = "auto"
    arch: str = ""
    case: dict[str, Scalar] | None = None
    dtypes: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    """Names or patterns; empty: all."""
    budget: float = 0.0
    """Seconds of sampling a case; 0: the default."""
    processes: int = 1
    """Fresh processes in which all that is right is timed one after the other: a row of each."""
    quick: bool = False
    slow: bool = False
    """Lets an interpreter or simulator take any time."""
    seed: int | None = None
    deadline: float = 30.0
    """Seconds that one case of one kernel may take to run."""
    zoo: bool = False
    """Judges on hostile inputs too, which are made of the Op's cases."""
    zoo_of: tuple[str, ...] = ()
    """Names or patterns of the variants that hostile inputs are asked of; empty: all."""
    declared: bool = True
    """Judges on the declared cases; False: on hostile inputs alone."""
    beside: int = 1
    """How many such requests run at the same time on this machine, each with its share of it."""
    sanitize: bool = False
    """Runs each kernel that is right, or that died, once more under compute-sanitizer's tools."""
    wish: Wish = USUAL
    """What is asked of timing beyond the usual."""
    drop_barriers: bool = False
    """Leaves each barrier of a right kernel out in turn, where its compiled code is watched."""


@dataclass(frozen=True)
class Progress:
    """Told how far things are."""

    step: Callable[[str, int, int], None] = lambda what, done, total: None
    note: Callable[[str], None] = lambda text: None
    judged: Callable[[], None] = lambda: None
    """All kernels of an Op are judged; those that are right are timed once this returns."""


def conditions_of(request: Request, target: Target, machine: Machine, device: str) -> Conditions:
    """What a run of this target is judged under; its seed is drawn here."""
    return Conditions(
        target=target,
        device=device,
        arch=request.arch or _arch(machine, device),
        seed=secrets.randbelow(1 << 31) if request.seed is None else request.seed,
        budget=0.0 if request.slow else 10.0,
        deadline=request.deadline,
        machine=machine.id,
        drop_barriers=request.drop_barriers,
        workers=workers_for(device, request.beside),
        beside=request.beside,
    )


def workers_for(device: str, beside: int) -> int:
    """Candidates of one Op that run at once, so many Ops being judged beside one another.

    Two at least on a GPU with others beside: while one is judged, the other runs.
    """
    alone = max(1, min(4, cores() // (1 if device == "cpu" else 4)))
    return alone if beside == 1 else min(alone, 1 + cores() // beside)


def chosen_device(wanted: str, machine: Machine) -> str:
    """`cpu` or `cuda:N` for what a user asked for. Raises AssayError if there is no such device."""
    if wanted == "auto":
        return "cuda:0" if machine.gpus else "cpu"
    kind, _, index = wanted.partition(":")
    if kind == "cpu":
        return "cpu"
    if kind != "cuda" or (index and not index.isdigit()):
        raise AssayError(f"--device {wanted}: say cpu, cuda or cuda:1")
    if int(index or 0) >= len(machine.gpus):
        raise AssayError(
            f"--device {wanted}: {machine.no_gpu or f'there are {len(machine.gpus)} GPUs'}; "
            "`assay doctor` says more, and --device cpu judges what needs none"
        )
    return f"cuda:{index or 0}"


def _arch(machine: Machine, device: str) -> str:
    if device == "cpu":
        return DEFAULT_ARCH
    major, minor = machine.gpus[int(device.partition(":")[2])].capability
    return f"sm_{major}{minor}"
