"""The whole geometry of one launch: totals, occupancy, waves, and what would lift it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ... import hardware
from ...errors import AssayError, LaunchError
from ...ways.launch import check_geometry, configured_as
from .lifts import Lift, lifts
from .limits import SCHEDULERS, WARP, Multiprocessor, multiprocessor
from .occupancy import PREDICTED, Footprint, Occupancy, occupancy
from .waves import Waves

Size = tuple[int, int, int]


@dataclass(frozen=True)
class Geometry:
    """One launch on one GPU. Nothing in it is measured."""

    name: str
    grid: Size
    block: Size
    arch: str
    multiprocessors: int | None
    """None: no number was given, and none is known; then there are no waves."""
    card: str
    """The card that has that many, where none were given; or why there is none."""
    taken: Footprint | None
    """None: how many registers it takes is not known, for `why`."""
    occupancy: Occupancy | None
    waves: Waves | None
    lifts: tuple[Lift, ...] = ()
    why: str = ""

    @property
    def blocks(self) -> int:
        return math.prod(self.grid)

    @property
    def block_threads(self) -> int:
        return math.prod(self.block)

    @property
    def threads(self) -> int:
        return self.blocks * self.block_threads

    @property
    def block_warps(self) -> int:
        return -(-self.block_threads // WARP)

    @property
    def warps(self) -> int:
        return self.blocks * self.block_warps

    @property
    def idle_lanes(self) -> int:
        """Lanes of each block's last warp that have no thread."""
        return self.block_warps * WARP - self.block_threads

    @property
    def blocks_per_sm(self) -> float | None:
        """Of the grid, evenly shared out; below 4 or so the GPU has little to choose from."""
        return self.blocks / self.multiprocessors if self.multiprocessors else None

    @property
    def active_warps(self) -> float | None:
        """Warps resident on a multiprocessor, on average over all of them, in the first wave.

        A ceiling of what Nsight Compute measures as Achieved Active Warps Per SM: it falls below
        where warps of a block end apart, or blocks end before all have begun.
        """
        if self.occupancy is None or self.blocks_per_sm is None:
            return None
        return min(float(self.occupancy.warps), self.blocks_per_sm * self.block_warps)

    @property
    def active_scheduler_warps(self) -> float | None:
        """The same for each scheduler."""
        return None if self.active_warps is None else self.active_warps / SCHEDULERS


def geometry(
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *,
    arch: str,
    registers: int | None,
    static_shared: int = 0,
    dynamic_shared: int = 0,
    barriers: int = 0,
    multiprocessors: int | None = None,
    carveout: int | str = PREDICTED,
    name: str = "",
    why: str = "",
) -> Geometry:
    """The geometry of a launch.

    grid, block: one to three numbers. registers: of a thread; None if they are not known (`why`).
    static_shared, dynamic_shared: bytes a block. multiprocessors: of the GPU; without it those of
    the card that is best known for the architecture, where hardware.py has one. carveout: as
    `occupancy` takes it.

    Raises AssayError for what no GPU of the architecture can launch, and for one not known.
    """
    try:
        launch = configured_as(name or "the launch", grid, block, dynamic_shared)
        check_geometry(launch)
    except LaunchError as error:
        raise AssayError(str(error)) from None
    sm = multiprocessor(arch)
    if static_shared > hardware.SHARED_DEFAULT:
        raise AssayError(
            f"{static_shared:,} bytes of static shared memory: compilers allow "
            f"{hardware.SHARED_DEFAULT:,}; what is beyond has to be dynamic"
        )
    number, card = _multiprocessors(multiprocessors, sm)
    made = Geometry(name, launch.grid, launch.block, sm.arch, number, card, None, None, None)
    if registers is None:
        return replace(made, why=why or "how many registers it takes is not known")
    taken = Footprint(made.block_threads, registers, static_shared, dynamic_shared, barriers)
    held = occupancy(taken, sm, carveout)
    if not held.blocks:
        raise AssayError(_refused(launch.name, taken, sm, held))
    waves = Waves(made.blocks, held.blocks * number) if number else None
    return replace(made, taken=taken, occupancy=held, waves=waves, lifts=lifts(taken, sm, carveout))


def _multiprocessors(given: int | None, sm: Multiprocessor) -> tuple[int | None, str]:
    if given is not None:
        if given < 1:
            raise AssayError(f"{given} multiprocessors: a GPU has at least one")
        return given, ""
    number = int(sm.arch.removeprefix("sm_"))
    if number not in hardware.CARDS:
        return None, "no number of multiprocessors is known"
    return hardware.MULTIPROCESSORS[number], hardware.CARDS[number]


def _refused(name: str, taken: Footprint, sm: Multiprocessor, held: Occupancy) -> str:
    said = []
    if held.limits["registers"] == 0:
        said.append(
            f"{taken.registers} registers x {taken.threads} threads do not fit a block "
            "(255 of a thread, 65,536 of a block whose warps are rounded up to fours)"
        )
    if held.limits["shared memory"] == 0:
        said.append(
            f"{taken.shared_bytes:,} bytes of shared memory, limit {sm.block_shared_bytes:,}"
        )
    if held.limits["barriers"] == 0:
        said.append(f"{taken.barriers} barriers, limit {sm.barriers}")
    return f"{name}: can't be launched on {sm.arch}: {'; '.join(said)}"
