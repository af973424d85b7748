"""Which clock a call on a GPU gets: CUPTI for one short kernel, events for several or long ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import events
from .gpu import Gpu
from .protocol import windows_for
from .traced import Traced
from .witness import Seen

LONG_SECONDS = 200e-6
"""From here on events are the better clock. Their windows move by 0.2 us, 0.1 % of it; CUPTI turns
its times into those of the host anew in each trace, by a factor that was seen to move by 0.3 %."""


@dataclass(frozen=True)
class Chosen:
    """A clock, and what CUPTI saw of calls that were prepared as its samples are."""

    clock: events.Events | Traced
    seen: Seen | None
    """None where CUPTI can't tell; the witness says why."""
    host_seconds: float
    """Of a call that comes alone."""


def choose(
    gpu: Gpu,
    call: Callable[[], None],
    about: float,
    *,
    restore: Callable[[], None] | None = None,
    flush: Callable[[], None] | None = None,
) -> Chosen:
    """The clock of a call that takes about so many seconds.

    restore, flush: come before each sample; without a flush, the L2 is refilled by reads.
    """
    host = events.host_seconds(call)
    clock = events.Events(call, restore, flush or gpu.flush, host, fixed=gpu.fixed or 0.0)
    seen = gpu.witness.watch(clock.unhurried().prepare, call)
    spans = sorted(seen.spans) if seen is not None else []
    clock.windows = windows_for(spans[len(spans) // 2] if spans else about)
    if seen is None or seen.kernels != 1 or seen.elsewhere or seen.uneven:
        return Chosen(clock, seen, host)
    return Chosen(Traced(clock, gpu.witness, seen.prepared, spans[len(spans) // 2]), seen, host)


def settled(clocks: Sequence[Any]) -> list[Any]:
    """The clocks of one schedule: events in CUPTI's place if every call that it times is long.

    If one is short CUPTI stays for all of them: its factor is the same for what shares a trace.
    """
    traced = [clock for clock in clocks if isinstance(clock, Traced)]
    if not traced or min(clock.about for clock in traced) < LONG_SECONDS:
        return list(clocks)
    return [clock.events if isinstance(clock, Traced) else clock for clock in clocks]
