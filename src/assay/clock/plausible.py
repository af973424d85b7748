"""What can't be is no number: the reason why a measured time is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence

GENEROUS = 1.25
"""The floor assumes this much more than the copy rate: reads alone run 4 to 8 % above it."""
LATE_SHARE = 0.05


def refuse(
    samples: Sequence[float],
    median: float,
    *,
    null_seconds: float | None,
    late: int,
    host_seconds: float | None,
    copy_rate: float | None,
    cold_bytes: int | None,
    kernels: int | None = None,
    elsewhere: int = 0,
) -> str:
    """Empty, or why these samples give no number.

    cold_bytes: bytes that must come from or go to DRAM; None where the cache may hold them.
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
    if cold_bytes and copy_rate:
        floor = cold_bytes / (GENEROUS * copy_rate)
        if median < floor:
            return (
                f"impossible: {1e6 * median:.2f} us, and moving {cold_bytes:,} bytes takes at "
                f"least {1e6 * floor:.2f} us on this card; look for work on another stream, a kept "
                "answer, or a wrong byte count"
            )
    return ""
