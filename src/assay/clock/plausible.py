"""What can't be is no number: the reason why a measured time is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..types import Floor

NEAR = 0.97
"""A time is refused below this share of the floor: clocks and byte counts are not exact."""
LATE_SHARE = 0.05


def refuse(
    samples: Sequence[float],
    median: float,
    *,
    null_seconds: float | None,
    late: int,
    host_seconds: float | None,
    floor: Floor | None,
    kernels: int | None = None,
    elsewhere: int = 0,
) -> str:
    """Empty, or why these samples give no number.

    floor: the least that a call can take, generously; None where nothing tells.
    kernels: what CUPTI saw one call run; None if it was not asked.
    elsewhere: how many of those ran on another stream.
    """
    if not samples or not all(math.isfinite(s) for s in samples):
        return "the clock gave no finite time"
    if min(samples) <= 0 or median <= 0:
        return "below the timer's resolution"
    if elsewhere:
        return (
            f"work outside the current stream: {elsewhere} of {kernels} kernels and copies, which "
            "the events do not see; launch on torch.cuda.current_stream()"
        )
    if kernels == 0:
        return "nothing ran on the GPU in a timed call"
    if late > LATE_SHARE * len(samples):
        took = f", which took {1e6 * host_seconds:.0f} us" if host_seconds else ""
        return (
            f"host-bound: in {late} of {len(samples)} samples the GPU waited for the launch{took}; "
            "does the call synchronise, or copy to the host?"
        )
    if null_seconds is not None and median <= null_seconds:
        return (
            f"it reads {1e6 * median:.2f} us, no more than an empty window "
            f"({1e6 * null_seconds:.2f} us): nothing ran on the current stream"
        )
    if floor and median < NEAR * floor.seconds:
        return (
            f"invalid, no such speed is possible: {1e6 * median:.2f} us, and its floor is "
            f"{1e6 * floor.seconds:.2f} us ({floor.by}); look for a kept answer, work on another "
            "stream, an early return, a hot cache, or a wrong count of bytes or FLOP"
        )
    return ""
