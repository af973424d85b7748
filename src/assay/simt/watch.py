"""What the launches of one run did together: one memory, all faults, all counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..types import Fault
from .adapters import Compiled, Size
from .counts import Counts
from .memory import Memory
from .module import load


@dataclass
class Watch:
    """Runs launches as adapters hand them on, and keeps what they did until it is cleared."""

    say: Callable[[str], None] = lambda _: None
    order: int = 0
    """0: warps and blocks in order; else the seed of a permutation."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Of a kernel: the number of the barrier that is left out."""
    programs: dict[str, str] = field(default_factory=dict)
    """The PTX of every kernel that was ever launched."""
    memory: Memory = field(default_factory=Memory)
    faults: list[Fault] = field(default_factory=list)
    counts: dict[str, Counts] = field(default_factory=dict)
    """By kernel."""
    archs: set[str] = field(default_factory=set)
    printed: list[str] = field(default_factory=list)

    def clear(self) -> None:
        """Forgets everything, for the next run."""
        self.memory = Memory()
        self.faults, self.counts, self.archs, self.printed = [], {}, set(), []

    def run(
        self, compiled: Compiled, grid: Size, block: Size, args: list[Any], shared: int
    ) -> None:
        """One launch. Raises NotCheckable, LaunchError, BuildError."""
        self.programs[compiled.name] = compiled.ptx
        drop = self.dropped.get(compiled.name)
        kernel = load(compiled.ptx, compiled.name, drop=drop, say=self.say)
        self.archs.add(kernel.arch)
        done = kernel.launch(grid, block, args, shared=shared, memory=self.memory, order=self.order)
        self.faults += done.faults
        known = self.counts.get(compiled.name)
        self.counts[compiled.name] = known + done.counts if known else done.counts
        if done.printed:
            self.printed.append(done.printed)
            print(done.printed, end="", flush=True)

    @property
    def arch(self) -> str:
        """What it was compiled for: `sm_80`; empty if nothing was launched."""
        return ", ".join(sorted(self.archs))
