"""What the launches of one run did together: one memory, all faults, all counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..types import Fault
from .adapters import Compiled, Size
from .counts import Counts
from .memory import Memory
from .module import Kernel, load
from .record import MOST_BYTES, Recorded
from .results import Tally


@dataclass
class Watch:
    """Runs launches as adapters hand them on, and keeps what they did until it is cleared."""

    say: Callable[[str], None] = lambda _: None
    phase: Callable[[str], None] = lambda _: None
    """Told `build` before a kernel is made that was not launched before, and `run` after it."""
    order: int = 0
    """0: warps and blocks in order; else the seed of a permutation."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Of a kernel: the number of the barrier that is left out."""
    programs: dict[str, str] = field(default_factory=dict)
    """The PTX of every kernel that was ever launched."""
    memory: Memory = field(default_factory=Memory)
    faults: list[Fault] = field(default_factory=list)
    tallies: dict[str, Tally] = field(default_factory=dict)
    """By kernel: what its launches did."""
    archs: set[str] = field(default_factory=set)
    printed: list[str] = field(default_factory=list)
    record: bool = False
    """Whether to keep who touches which memory, launch by launch."""
    records: list[Recorded] = field(default_factory=list)
    _made: set[tuple[str, str, int | None]] = field(default_factory=set)

    def clear(self) -> None:
        """Forgets everything, for the next run."""
        self.memory = Memory()
        self.faults, self.tallies, self.archs, self.printed = [], {}, set(), []
        self.records = []

    def run(
        self, compiled: Compiled, grid: Size, block: Size, args: list[Any], shared: int
    ) -> None:
        """One launch. Raises NotCheckable, LaunchError, BuildError."""
        self.programs[compiled.name] = compiled.ptx
        drop = self.dropped.get(compiled.name)
        kernel = self._loaded(compiled, drop)
        self.archs.add(kernel.arch)
        done = kernel.launch(
            grid,
            block,
            args,
            shared=shared,
            memory=self.memory,
            order=self.order,
            one_program=compiled.one_program,
            record=self._room(),
        )
        if done.record is not None:
            self.records.append(done.record)
        self.faults += done.faults
        known = self.tallies.get(compiled.name)
        same = known is not None and known.code is done.tally.code
        self.tallies[compiled.name] = known + done.tally if known and same else done.tally
        if done.printed:
            self.printed.append(done.printed)
            print(done.printed, end="", flush=True)

    def _loaded(self, compiled: Compiled, drop: int | None) -> Kernel:
        """The kernel as it runs here; making it takes g++ seconds, which are no time of a run."""
        key = compiled.ptx, compiled.name, drop
        if key in self._made:
            return load(*key[:2], drop=drop, say=self.say)
        self.phase("build")
        try:
            return load(*key[:2], drop=drop, say=self.say)
        finally:
            self._made.add(key)
            self.phase("run")

    def _room(self) -> int:
        """Bytes that the next launch may record; 0: it is not to."""
        used = sum(record.bytes for record in self.records)
        return max(1, MOST_BYTES - used) if self.record else 0

    def counts(self) -> Counts:
        """What all launches did, by line of source."""
        total = Counts(launches=0)
        for tally in self.tallies.values():
            total = total + tally.counts()
        return total

    @property
    def arch(self) -> str:
        """What it was compiled for: `sm_80`; empty if nothing was launched."""
        return ", ".join(sorted(self.archs))
