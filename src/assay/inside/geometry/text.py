"""A geometry as a few lines of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from .model import Geometry
from .occupancy import PREDICTED, Footprint, Occupancy
from .waves import Waves

WIDTH = 14
MOST_NAME = 76


Entry = tuple[str, str]
"""What it is, and what is said of it."""


def lines(found: Geometry) -> Iterator[str]:
    """The text, line by line."""
    if found.name:
        yield found.name if len(found.name) <= MOST_NAME else f"{found.name[: MOST_NAME - 3]}..."
    for what, said in _entries(found):
        for part in textwrap.wrap(said, 80 - WIDTH - 2):
            yield f"  {what:<{WIDTH}}{part}"
            what = ""


def _entries(found: Geometry) -> Iterator[Entry]:
    yield "launch", f"grid {_size(found.grid)}, block {_size(found.block)}; {_gpu(found)}"
    yield (
        "",
        f"{_many(found.blocks, 'block')} of {_many(found.block_warps, 'warp')}, "
        f"{_many(found.threads, 'thread')}{_partial(found)}",
    )
    if found.taken is None or found.occupancy is None:
        yield "occupancy", f"not known: {found.why}"
        return
    yield _takes(found.taken)
    yield from _occupancy(found.occupancy)
    if found.waves is not None:
        yield from _waves(found, found.waves)
    for lift in found.lifts:
        yield "to lift it", f"{lift.change}: {_percent(lift.fraction)}"


def _gpu(found: Geometry) -> str:
    if found.multiprocessors is None:
        return f"{found.arch}, {found.card}"
    card = f" ({found.card})" if found.card else ""
    return f"{found.arch}, {found.multiprocessors} SMs{card}"


def _partial(found: Geometry) -> str:
    return f", {found.idle_lanes} lanes of the last warp unused" if found.idle_lanes else ""


def _takes(taken: Footprint) -> Entry:
    shared = [
        f"{size:,} B {kind}"
        for kind, size in (
            ("static", taken.static_shared_bytes),
            ("dynamic", taken.dynamic_shared_bytes),
        )
        if size
    ]
    of_block = " + ".join(shared) or "none"
    return "takes", f"{_many(taken.registers, 'register')} a thread; shared memory: {of_block}"


def _occupancy(held: Occupancy) -> Iterator[Entry]:
    by = ", ".join(f"{name} {most}" for name, most in held.limits.items() if most is not None)
    yield "blocks an SM", f"{held.blocks} (by {by})"
    limited = f", limited by {' and '.join(held.limiters)}" if held.limiters else ""
    yield "occupancy", f"{_percent(held.fraction)}{limited}"
    yield (
        "",
        f"{held.warps} of {held.most_warps} warps, "
        f"{held.scheduler_warps:.2f} of {held.most_scheduler_warps} a scheduler",
    )
    if held.carveout == PREDICTED and "shared memory" in held.limiters:
        yield "", f"if shared memory is set to {held.carveout_bytes:,} B, which just suffices"


FEW_BLOCKS = 4
"""Blocks a multiprocessor below which it has little to choose from (course notes)."""


def _waves(found: Geometry, waves: Waves) -> Iterator[Entry]:
    if not waves.full:
        rest = f"{waves.blocks:,} of {_many(waves.per_wave, 'block')}"
        yield "waves", f"{waves.number:.2f}: {rest}; the grid is too small to fill the GPU"
        active = found.active_warps
        if active is not None:
            yield "", f"at most {active:.1f} warps an SM resident on average"
        return
    rest = f", then {waves.partial:,} of {_many(waves.per_wave, 'block')}" if waves.partial else ""
    yield "waves", f"{waves.number:.2f}: {waves.full:,} full{rest}"
    if found.blocks_per_sm is not None and found.blocks_per_sm < FEW_BLOCKS:
        few = f"{found.blocks_per_sm:.1f} blocks an SM in all; fewer than {FEW_BLOCKS}"
        yield "", f"{few} leave it little to choose from"
    if waves.partial:
        most, idle = _percent(waves.tail_most, 1), _percent(waves.idle, 1)
        yield (
            "tail",
            f"at most {most} of the time; {idle} of the block places are empty if all blocks "
            f"take equally long; {waves.padding:,} more blocks would fill them",
        )


def _size(three: tuple[int, int, int]) -> str:
    """`16x32x3`, without the ones at its end."""
    x, y, z = three
    return f"{x}x{y}x{z}" if z > 1 else f"{x}x{y}" if y > 1 else str(x)


def _percent(fraction: float, digits: int = 2) -> str:
    return f"{100 * fraction:.{digits}f} %"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
