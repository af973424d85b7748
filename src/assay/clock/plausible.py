"""What can't be is no number: the reason why a measured time is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence

GENEROUS = 1.25
"""The floor assumes this much more than the copy rate: reads alone run 4 to 8 % above it."""
LATE_SHARE = 0.05
AGREE, AGREE_SECONDS = 0.05, 5e-7
"""How far events may be from CUPTI's span, or so much a kernel: the gaps between kernels come out
up to 0.5 us apart when they are traced."""


def refuse(
    samples: Sequence[float],
    median: float,
    *,
    null_seconds: float | None,
    fixed_seconds: float | None = None,
    late: int,
    host_seconds: float | None,
    copy_rate: float | None,
    cold_bytes: int | None,
    kernels: int | None = None,
    elsewhere: int = 0,
    span_seconds: float | None = None,
    uneven: str = "",
) -> str:
    """Empty, or why these samples give no number.

    null_seconds: what events read with nothing between. fixed_seconds: what was taken off samples.

    cold_bytes: bytes that must come from or go to DRAM; None where the cache may hold them.
    kernels: what CUPTI saw one call run; None if it was not asked.
    elsewhere: how many of those ran on another stream.
    span_seconds: from first start to last end of a call, by CUPTI. uneven: how calls differ in it.
    """
    if not samples or not all(math.isfinite(s) for s in samples):
        return "the clock gave no finite time"
    if elsewhere:
        return (
            f"work outside the current stream: {elsewhere} of {kernels} kernels and copies, which "
            "the events do not see; launch on torch.cuda.current_stream()"
        )
    if kernels == 0:
        return "nothing ran on the GPU in a timed call"
    if kernels is not None and span_seconds is None:
        return f"CUPTI can't tell the calls apart: {uneven}"
    window = median + (fixed_seconds or 0.0)
    if null_seconds is not None and window <= null_seconds:
        return (
            f"it reads {1e6 * window:.2f} us, no more than an empty window "
            f"({1e6 * null_seconds:.2f} us): nothing ran on the current stream"
        )
    if min(samples) <= 0 or median <= 0:
        return "below the timer's resolution"
    if late > LATE_SHARE * len(samples):
        took = f", which took {1e6 * host_seconds:.0f} us" if host_seconds else ""
        return (
            f"host-bound: in {late} of {len(samples)} samples the GPU waited for the launch{took}; "
            "does the call synchronise, or copy to the host?"
        )
    apart = _apart(median, span_seconds, kernels)
    if apart:
        return apart
    if cold_bytes and copy_rate:
        floor = cold_bytes / (GENEROUS * copy_rate)
        if median < floor:
            return (
                f"impossible: {1e6 * median:.2f} us, and moving {cold_bytes:,} bytes takes at "
                f"least {1e6 * floor:.2f} us on this card; look for work on another stream, a kept "
                "answer, or a wrong byte count"
            )
    return ""


def _apart(median: float, span: float | None, kernels: int | None) -> str:
    """Empty, or that two clocks say different things of the same calls."""
    if span is None or not kernels:
        return ""
    if abs(median - span) <= max(AGREE * span, AGREE_SECONDS * kernels):
        return ""
    return (
        f"the clocks disagree: events say {1e6 * median:.2f} us, and CUPTI {1e6 * span:.2f} us "
        f"from the first start to the last end of {kernels} kernels and copies; is another "
        "profiler attached, or does the call take another path at times?"
    )
