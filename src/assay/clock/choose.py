"""Which clock a call on a GPU gets: CUPTI where it is one kernel, events where it is several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import events
from .gpu import Gpu
from .protocol import windows_for
from .traced import Traced
from .witness import Seen


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
    return Chosen(Traced(clock, gpu.witness, seen.prepared), seen, host)
