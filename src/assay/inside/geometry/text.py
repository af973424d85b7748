"""A geometry as a few lines of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from .model import Geometry
from .occupancy import PREDICTED, Footprint, Occupancy
from .waves import Waves

WIDTH = 14
MOST_NAME = 76


def lines(found: Geometry) -> Iterator[str]:
    """The text, line by line."""
    if found.name:
        yield found.name if len(found.name) <= MOST_NAME else f"{found.name[: MOST_NAME - 3]}..."
    yield _line("launch", f"grid {_size(found.grid)}, block {_size(found.block)}; {_gpu(found)}")
    yield _line(
        "",
        f"{_many(found.blocks, 'block')} of {_many(found.block_warps, 'warp')}, "
        f"{_many(found.threads, 'thread')}{_partial(found)}",
    )
    if found.taken is None or found.occupancy is None:
        yield _line("occupancy", f"not known: {found.why}")
        return
    yield from _takes(found.taken)
    yield from _occupancy(found.occupancy)
    if found.waves is not None:
        yield from _waves(found, found.waves)
    for lift in found.lifts:
        yield _line("to lift it", f"{lift.change}: {_percent(lift.fraction)}")


def _gpu(found: Geometry) -> str:
    if found.multiprocessors is None:
        return f"{found.arch}, {found.card}"
    card = f" ({found.card})" if found.card else ""
    return f"{found.arch}, {found.multiprocessors} SMs{card}"


def _partial(found: Geometry) -> str:
    return f", {found.idle_lanes} lanes of the last warp unused" if found.idle_lanes else ""


def _takes(taken: Footprint) -> Iterator[str]:
    shared = [
        f"{size:,} B {kind}"
        for kind, size in (
            ("static", taken.static_shared_bytes),
            ("dynamic", taken.dynamic_shared_bytes),
        )
        if size
    ]
    yield _line(
        "takes",
        f"{_many(taken.registers, 'register')} a thread; "
        f"shared memory a block: {' + '.join(shared) or 'none'}",
    )


def _occupancy(held: Occupancy) -> Iterator[str]:
    by = ", ".join(f"{name} {most}" for name, most in held.limits.items() if most is not None)
    yield _line("blocks an SM", f"{held.blocks} (by {by})")
    limited = f", limited by {' and '.join(held.limiters)}" if held.limiters else ""
    yield _line("occupancy", f"{_percent(held.fraction)}{limited}")
    yield _line(
        "",
        f"{held.warps} of {held.most_warps} warps, "
        f"{held.scheduler_warps:.2f} of {held.most_scheduler_warps} a scheduler",
    )
    if held.carveout == PREDICTED and "shared memory" in held.limiters:
        yield _line("", f"shared memory as set for that many blocks: {held.carveout_bytes:,} B")


def _waves(found: Geometry, waves: Waves) -> Iterator[str]:
    if not waves.full:
        rest = f"{waves.blocks:,} of {_many(waves.per_wave, 'block')}"
        yield _line("waves", f"{waves.number:.2f}: {rest}; the grid is too small to fill the GPU")
        active = found.active_warps
        if active is not None:
            yield _line("", f"at most {active:.1f} warps an SM resident on average")
        return
    rest = f", then {waves.partial:,} of {_many(waves.per_wave, 'block')}" if waves.partial else ""
    yield _line("waves", f"{waves.number:.2f}: {waves.full:,} full{rest}")
    if waves.partial:
        most, idle = _percent(waves.tail_most, 1), _percent(waves.idle, 1)
        yield _line("tail", f"at most {most} of the time; {idle} of the block places are empty")
        yield _line("", f"if all blocks take equally long; {waves.padding:,} more would fill them")


def _line(what: str, text: str) -> str:
    return f"  {what:<{WIDTH}}{text}"


def _size(three: tuple[int, int, int]) -> str:
    """`16x32x3`, without the ones at its end."""
    x, y, z = three
    return f"{x}x{y}x{z}" if z > 1 else f"{x}x{y}" if y > 1 else str(x)


def _percent(fraction: float, digits: int = 2) -> str:
    return f"{100 * fraction:.{digits}f} %"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
