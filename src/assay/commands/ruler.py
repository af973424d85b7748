"""`assay selftest clock`: the clock's own error table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
from rich.console import Console

from ..clock.statistics import seconds
from ..request import chosen_device
from ..selftest.clock import Ruler, upper_bound
from ..selftest.store import keep
from ..selftest.trying import tried
from ..session import Session

NEAR, NEAR_SECONDS = 0.01, 1e-7
"""A reading this near to the truth, relative or in seconds, is called right."""
NOT_SHOWN = ("raw window", "graph not linear")
"""Readings that are kept with the table and would not fit into 80 columns."""


def clock(device: str, processes: int, comparisons: int, *, as_json: bool) -> int:
    """Tries the clock and keeps the table with the machine; 1 if an equal pair was told apart.

    Raises AssayError.
    """
    console = Console(highlight=False, stderr=True)
    with tempfile.TemporaryDirectory(prefix="assay-ruler-") as logs, Session(Path(logs)) as session:
        chosen = chosen_device(device, session.machine())
        made = tried(session, chosen, processes, comparisons, console.print)
    keep(made)
    if as_json:
        print(msgspec.json.encode(made).decode())
    else:
        print("\n".join(text(made)))
    return 1 if any(one.false or one.missed for one in made.alarms) else 0


def text(made: Ruler) -> Iterator[str]:
    """The table, at most 80 columns wide."""
    yield f"the clock on {made.device}, {made.processes} processes, {made.seconds:.0f} s"
    yield ""
    clocks = [name for name in made.bias[0].readings if name not in NOT_SHOWN]
    yield f"{'spin':>10}  " + "".join(f"{name + ' off by':>22}" for name in clocks)
    for one in made.bias:
        cells = [f"{_off(one.off(name), one.true):>22}" for name in clocks]
        yield f"{seconds(one.true):>10}  " + "".join(cells)
    yield ""
    for alarm in made.alarms:
        yield (
            f"{seconds(alarm.length):>10}  q {100 * alarm.noise:.2f} %, margin "
            f"{100 * alarm.margin:.2f} %: {alarm.false} of {alarm.same} equal pairs told apart "
            f"(<= {100 * upper_bound(alarm.false, alarm.same):.2f} %)"
        )
        yield (
            f"{'':>10}  {alarm.missed} of {alarm.slower} planted {100 * alarm.planted:g} % missed "
            f"(<= {100 * upper_bound(alarm.missed, alarm.slower):.2f} %)"
        )
    yield ""
    spins = {one.length: one for one in made.cycles}
    for repeat in made.repeats:
        said = f"medians of {made.processes} processes within {100 * repeat.spread:.3f} %"
        if repeat.length in spins:
            said += f"; of a spin in cycles {100 * spins[repeat.length].spread:.3f} %"
        yield f"{seconds(repeat.length):>10}  {said}"
    yield ""
    yield f"flush: {_flush(made.flush)}"


def _off(seconds_off: float, true: float) -> str:
    mark = "" if abs(seconds_off) <= max(NEAR * true, NEAR_SECONDS) else " !"
    return f"{1e9 * seconds_off:+.0f} ns ({100 * seconds_off / true:+.2f} %){mark}"


def _flush(found: dict[str, float | str]) -> str:
    if "why" in found:
        return str(found["why"])
    hot, once, twice = (float(found[name]) for name in ("hot", "flushed", "flushed twice"))
    proven = "proven" if once > 1.1 * hot and abs(once / twice - 1) < 0.05 else "NOT proven"
    return (
        f"{proven}: {float(found['bytes']) / 2**20:.0f} MiB read in {seconds(hot)} hot, "
        f"{seconds(once)} flushed, {seconds(twice)} flushed twice"
    )
