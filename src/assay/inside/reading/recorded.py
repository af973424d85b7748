"""A kernel that Nsight Compute recorded, beside what launch geometry says of it by arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import AssayError
from ..geometry import PREDICTED, Geometry, geometry, multiprocessor
from .ncu import Kernel

NAMES = {
    "registers": ("Registers Per Thread", "launch__registers_per_thread"),
    "static": ("Static Shared Memory Per Block", "launch__shared_mem_per_block_static"),
    "dynamic": ("Dynamic Shared Memory Per Block", "launch__shared_mem_per_block_dynamic"),
    "config": ("Shared Memory Configuration Size", "launch__shared_mem_config_size"),
    "sms": ("# SMs", "launch__sm_count"),
    "barriers": ("launch__barrier_count",),
    "blocks": ("Block Limit SM", "launch__occupancy_limit_blocks"),
    "limit registers": ("Block Limit Registers", "launch__occupancy_limit_registers"),
    "limit shared memory": ("Block Limit Shared Mem", "launch__occupancy_limit_shared_mem"),
    "limit warps": ("Block Limit Warps", "launch__occupancy_limit_warps"),
    "limit barriers": ("Block Limit Barriers", "launch__occupancy_limit_barriers"),
    "theoretical warps": (
        "Theoretical Active Warps per SM",
        "sm__maximum_warps_avg_per_active_cycle",
    ),
    "theoretical occupancy": (
        "Theoretical Occupancy",
        "sm__maximum_warps_per_active_cycle_pct",
    ),
    "waves": ("Waves Per SM", "launch__waves_per_multiprocessor"),
    "threads": ("Threads", "launch__thread_count"),
    "grid": ("Grid Size", "launch__grid_size"),
    "block": ("Block Size", "launch__block_size"),
}
"""Titles on the details page, and names of the raw page and of reports."""
PRINTED = 0.005
"""Half of the last digit that is printed."""


@dataclass(frozen=True)
class Compared:
    """One figure of the file and the same by arithmetic."""

    what: str
    recorded: float
    computed: float

    @property
    def same(self) -> bool:
        """Within what the page rounds away."""
        return abs(self.recorded - self.computed) <= PRINTED + 1e-9


def figure(kernel: Kernel, what: str) -> float | None:
    """A figure of NAMES in base units; None where the file does not have it."""
    for name in NAMES[what]:
        value = kernel.value(name)
        if value is not None:
            return value
    return None


def geometry_of(kernel: Kernel, multiprocessors: int | None = None) -> Geometry:
    """The geometry of a recorded launch, by arithmetic from what it takes.

    multiprocessors: where the file does not say (older versions). Shared memory is set to what was
    recorded: the size next to it, as the page rounds it. Raises AssayError where the launch itself
    is not in the file.
    """
    if kernel.grid is None or kernel.block is None or not kernel.capability:
        raise AssayError(f"{kernel.name}: the file does not say how it was launched")
    registers = figure(kernel, "registers")
    sms, config = figure(kernel, "sms"), figure(kernel, "config")
    sm = multiprocessor(kernel.capability)
    carveout: int | str = PREDICTED
    if config is not None:
        carveout = min(sm.carveouts_bytes, key=lambda size: abs(size - config))
    return geometry(
        kernel.grid,
        kernel.block,
        arch=sm.arch,
        registers=None if registers is None else int(registers),
        static_shared=round(figure(kernel, "static") or 0),
        dynamic_shared=round(figure(kernel, "dynamic") or 0),
        barriers=int(figure(kernel, "barriers") or 0),
        multiprocessors=int(sms) if sms else multiprocessors,
        carveout=carveout,
        name=kernel.name,
        why="the file does not say how many registers it takes",
    )


def compared(kernel: Kernel, found: Geometry) -> tuple[Compared, ...]:
    """Every figure that both have."""
    computed: dict[str, float] = {
        "threads": found.threads,
        "grid": found.blocks,
        "block": found.block_threads,
    }
    if found.occupancy is not None:
        held = found.occupancy
        blocks = held.limits["blocks"] or 0
        computed["blocks"] = blocks
        for name in ("registers", "shared memory", "warps", "barriers"):
            # Nsight Compute prints the blocks of a multiprocessor where something is no limit.
            most = held.limits[name]
            capped = blocks if most is None or (name == "barriers" and most > blocks) else most
            computed[f"limit {name}"] = capped
        computed["theoretical warps"] = held.warps
        computed["theoretical occupancy"] = 100 * held.fraction
    if found.waves is not None:
        computed["waves"] = found.waves.number
    pairs = ((what, figure(kernel, what), value) for what, value in computed.items())
    return tuple(Compared(what, said, value) for what, said, value in pairs if said is not None)
