"""What can't be is no number: the reason why a measured time is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..types import Floor

NEAR = 0.97
"""A time is refused below this share of the floor: clocks and byte counts are not exact."""
LATE_SHARE = 0.05
HELD_SHARE = 0.05
HOST_BOUND = "host-bound"
"""How the reason begins where the GPU waited for the host."""
BROKEN = (
    "hardware slowdown",
    "hardware thermal slowdown",
    "software thermal slowdown",
    "hardware power brake",
)
"""Under these a card is not what its data sheet says. A power cap is how a card works: a note."""
AGREE, AGREE_SECONDS = 0.05, 8e-7
"""How far events may be from what CUPTI says, or so much a kernel. Of kernels below 10 us events
read 0.33 us more at the median, 0.53 at 95 % of 692, and up to 0.72 (the gallery's, on H200s)."""
A_BOUNDARY, IN_A_ROW = 0.03, 0.1
"""How far events may be below the sum of several kernels' durations by CUPTI, which lets each end
before the next begins: so much for each, and so much at most. 199.7 us and 214.5 of four that move
128 MB each on an H200, 6.9 % of three boundaries."""


def refuse(
    samples: Sequence[float],
    median: float,
    *,
    null_seconds: float | None,
    fixed_seconds: float | None = None,
    late: int,
    host_seconds: float | None,
    floor: Floor | None,
    kernels: int | None = None,
    elsewhere: int = 0,
    span_seconds: float | None = None,
    kernel_seconds: float | None = None,
    uneven: str = "",
    persisting: int = 0,
    held: Mapping[str, Sequence[int]] = MappingProxyType({}),
    clock_hz: tuple[float, float] | None = None,
    event_seconds: float | None = None,
) -> str:
    """Empty, or why these samples give no number.

    null_seconds: what events read with nothing between. fixed_seconds: what was taken off samples.
    floor: the least that a call can take, generously; None where nothing tells.
    kernels: what CUPTI saw one call run; None if it was not asked.
    elsewhere: how many of those ran on another stream.
    span_seconds: from first start to last end of a call, by CUPTI. kernel_seconds: the sum of its
    kernels' durations. uneven: how calls differ in what they ran.
    persisting: bytes of L2 that it set aside. held: of what holds clocks down, which samples.
    clock_hz: lowest and highest SM clock beside the samples.
    event_seconds: what events read of the same calls, where the samples are CUPTI's.
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
    by_events = median if event_seconds is None else event_seconds
    window = by_events + (fixed_seconds or 0.0)
    if null_seconds is not None and window <= null_seconds:
        return (
            f"it reads {1e6 * window:.2f} us, no more than an empty window "
            f"({1e6 * null_seconds:.2f} us): nothing ran on the current stream"
        )
    if min(samples) <= 0 or median <= 0:
        return "below the timer's resolution"
    if persisting:
        return (
            f"it set {persisting:,} bytes of L2 aside for persisting lines, which no flush drives "
            "out: its cache is neither cold nor the same for the others; reset the limit, or time "
            "it with --cache hot in a program of your own"
        )
    if late > LATE_SHARE * len(samples):
        took = f", which took {1e6 * host_seconds:.0f} us" if host_seconds else ""
        return (
            f"{HOST_BOUND}: in {late} of {len(samples)} samples the GPU waited for the launch"
            f"{took}; does the call synchronise, or copy to the host?"
        )
    broken = _broken(held, len(samples), clock_hz)
    if broken:
        return broken
    if event_seconds is None:
        apart = _apart(by_events, kernel_seconds, span_seconds, kernels)
    else:
        apart = _apart(event_seconds, median, median, kernels)
    if apart:
        return apart
    if floor and median < NEAR * floor.seconds:
        return (
            f"invalid, no such speed is possible: {1e6 * median:.2f} us, and its floor is "
            f"{1e6 * floor.seconds:.2f} us ({floor.by}); look for a kept answer, work on another "
            "stream, an early return, a hot cache, or a wrong count of bytes or FLOP"
        )
    return ""


def _broken(
    held: Mapping[str, Sequence[int]], samples: int, clock_hz: tuple[float, float] | None
) -> str:
    """Empty, or that the card was too hot, or badly fed, to be what it is."""
    for name in BROKEN:
        count = len(held.get(name, ()))
        if count > HELD_SHARE * samples:
            low, high = (1e-6 * hz for hz in clock_hz or (0.0, 0.0))
            return (
                f"throttled: {name} in {count} of {samples} samples, at {low:.0f} to {high:.0f} "
                "MHz; let the card cool, see what else uses it, and measure again"
            )
    return ""


def _apart(by_events: float, busy: float | None, span: float | None, kernels: int | None) -> str:
    """Empty, or that two clocks say different things of the same calls.

    Events read no less than the kernels take (see IN_A_ROW), and no more than from first start to
    last end, of which tracing stretches the gaps.
    """
    if span is None or not kernels:
        return ""
    low = span if busy is None else min(busy, span)
    slack = max(AGREE * span, AGREE_SECONDS * kernels)
    below = max(slack, min(IN_A_ROW, A_BOUNDARY * (kernels - 1)) * low)
    if low - below <= by_events <= span + slack:
        return ""
    return (
        f"the clocks disagree: events say {1e6 * by_events:.2f} us, and CUPTI {1e6 * span:.2f} us "
        f"from the first start to the last end of {kernels} kernels and copies, {1e6 * low:.2f} us "
        "of them running; is another profiler attached, or does the call take another path at "
        "times?"
    )
