"""How a grid fills a GPU: full waves, the partial one at the end, and what that costs at most."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Waves:
    """A wave is as many blocks as the whole GPU holds at a time."""

    blocks: int
    per_wave: int

    @property
    def number(self) -> float:
        """Nsight Compute's Waves Per SM."""
        return self.blocks / self.per_wave

    @property
    def full(self) -> int:
        return self.blocks // self.per_wave

    @property
    def partial(self) -> int:
        """Blocks of the last wave where it is not full, else 0.

        Nsight Compute's rule prints one off from this for 116 of 132 (117), 287 of 1,536 (286) and
        216 of 648 (215): each is what binary floating point makes of (waves - full) x per_wave.
        """
        return self.blocks % self.per_wave

    @property
    def tail_most(self) -> float:
        """The share of the time that a partial last wave can take: 1 / (full waves + 1).

        0 without one, or where there is no full wave before it (then the grid is too small).
        """
        return 1 / (self.full + 1) if self.full and self.partial else 0.0

    @property
    def idle(self) -> float:
        """The share of block places that stay empty if all blocks take equally long."""
        return 1 - self.number / -(-self.blocks // self.per_wave)

    @property
    def padding(self) -> int:
        """Blocks that would fill the last wave."""
        return -self.blocks % self.per_wave
