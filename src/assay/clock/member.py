"""A kernel in the schedule: its call, its clock, its samples, and outputs of timed calls."""

from __future__ import annotations

import mmap
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch

from .. import faults
from ..errors import AssayError
from ..verdict.buffers import POISONS, is_dense, plain
from ..verdict.protocol import Ran
from ..verdict.shipped import raw_of, ship
from ..verdict.tamper import Taken, Tampered

Made = TypeVar("Made")


class Lost(Exception):
    """A kernel after whose call this process can time nothing more."""

    def __init__(self, index: int, word: str, reason: str):
        super().__init__(reason)
        self.index, self.word, self.reason = index, word, reason


@dataclass
class Member:
    """A kernel in the schedule."""

    index: int
    clock: Any
    call: Callable[[], None]
    device: str
    outputs: list[Any]
    """What the last call returned, as the only thing in a list."""
    inputs: list[list[Any]]
    """Sets of inputs that calls take in turn; one, where nothing is rotated."""
    samples: list[float] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    warm_calls: int = 0
    warm_seconds: float = 0.0
    first_seconds: float = 0.0
    wall_seconds: float = 0.0
    still: bool = False
    """Whether its times stayed where they were before samples were kept."""
    interrupted: list[int] = field(default_factory=list)
    """Samples during which this process was put aside for another (CPU)."""
    persisting: int = 0
    """Bytes of L2 that it set aside."""
    spent: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)
    """What CUPTI saw of one call."""
    kept: list[Ran] = field(default_factory=list)
    """Outputs of timed calls, for the oracle."""

    @property
    def kind(self) -> str:
        """`cuda` or `cpu`."""
        return self.device.partition(":")[0]

    def done(self, rounds: int, least: int, seconds: float) -> bool:
        """Whether a slow kernel has what it needs, and leaves the time to the others."""
        return rounds >= least and self.spent > seconds

    def add(self, samples: list[float], number: int) -> None:
        """Keeps samples of rounds from `number` on."""
        self.samples += samples
        self.rounds += range(number, number + len(samples))

    def sample(self, state: mmap.mmap, noted: Taken) -> float:
        """Seconds of one sample. Raises Lost for what goes wrong in it."""
        return self.guarded(state, noted, lambda: float(self.clock.sample()))

    def guarded(self, state: mmap.mmap, noted: Taken, action: Callable[[], Made]) -> Made:
        """What an action that calls the kernel gives; whatever it raises is the kernel's fault."""
        state[0] = self.index
        try:
            with torch.no_grad():
                made = action()
            noted.check_timers()
        except AssayError:
            raise
        except Tampered as found:
            raise Lost(self.index, "tampered", str(found)) from None
        except BaseException as error:  # noqa: BLE001 - a kernel's fault is its verdict
            traceback.print_exc()
            raise Lost(self.index, *faults.word_of(error)) from None
        return made

    def keep(self, name: str, seed: int, scratch: str) -> None:
        """Ships the outputs of the last call, for inputs of that seed."""
        folder = Path(scratch) / f"{name}{self.index}"
        folder.mkdir()
        outputs = tuple(
            ship(plain(value), folder / f"output{i}", set())
            for i, value in enumerate(self.outputs[0])
        )
        self.kept.append(Ran(seed=seed, poison=POISONS[0], outputs=outputs))

    def scrub(self) -> None:
        """Leaves no right answer lying about for the kernel that is called next."""
        for value in self.outputs[0]:
            if is_dense(value) and value.numel() and 0 not in value.stride():
                raw = raw_of(value, True)
                start = value.storage_offset() * value.element_size()
                raw[start : start + raw_of(value, False).numel()].fill_(POISONS[0])
        self.outputs.clear()
