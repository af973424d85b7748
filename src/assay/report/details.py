"""What `bench --details` adds: host, device and wall time apart, memory, rates, conditions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from ..types import Input, Row, Timing
from . import units


def show(console: Console, rows: Sequence[Row]) -> None:
    """Prints the details of every row that has a timing, case by case."""
    for row in rows:
        if row.timing is None:
            continue
        console.print(Text(f"{row.op} · {row.label} · {row.case.label}", style="bold"))
        for name, text in said(row, row.timing):
            parts = textwrap.wrap(text, max(20, console.width - 16)) or [""]
            console.print(Text(f"  {name:<12}  {parts[0]}"), soft_wrap=True)
            for part in parts[1:]:
                console.print(Text(f"{'':<16}{part}"), soft_wrap=True)
        console.print()


def said(row: Row, timing: Timing) -> Iterator[tuple[str, str]]:
    """A name and a text for each thing that is known."""
    yield "time", _time(timing)
    yield "samples", _samples(timing)
    yield "rates", ", ".join(_rates(row, timing))
    if timing.wall_seconds is not None:
        yield "wall", _wall(timing)
    if timing.period_seconds is not None:
        yield "period", f"{units.seconds(timing.period_seconds)} more for one more call in a graph"
    elif timing.no_period:
        yield "period", f"none: {timing.no_period}"
    if timing.sustained is not None:
        yield "sustained", _sustained(timing)
    if timing.kernels is not None:
        yield "kernels", f"{timing.kernels} a call, {_spans(timing)}"
    if timing.memory is not None:
        yield "memory", _memory(timing)
    if timing.working_bytes is not None:
        yield "working set", _working(timing)
    if row.build or timing.first_call_seconds is not None:
        yield "once", _once(row, timing)
    if timing.warmup_calls is not None and timing.warmup_seconds is not None:
        yield "warm-up", f"{timing.warmup_calls} calls, {units.seconds(timing.warmup_seconds)}"
    yield from (("input", _input(one)) for one in timing.inputs)
    if timing.clock_hz:
        yield "clock", _clock(timing)
    for reason, at in timing.held.items():
        yield "held", f"{reason} in {len(at)} of {len(timing.samples)} samples"
    if timing.other_load is not None:
        yield "other load", f"{100 * timing.other_load:.0f} % of the CPUs"
    if timing.noise is not None:
        yield "noise floor", f"q {100 * timing.noise:.2f} %, by assay selftest clock"
    yield from (("note", text) for text in timing.notes)


def _time(timing: Timing) -> str:
    text = f"{units.seconds(timing.median)} a call, {timing.cache}, by {timing.method}"
    if timing.event_seconds is None:
        return text
    return f"{text}; events say {units.seconds(timing.event_seconds)}"


def _samples(timing: Timing) -> str:
    half = 100 * (timing.high - timing.low) / 2 / timing.median
    text = f"{len(timing.samples)}, median known to {half:.2g} %"
    ended = {"interval": "ended as it was known well enough", "budget": "ended by the budget"}
    return f"{text}, {ended[timing.ended]}" if timing.ended else text


def _rates(row: Row, timing: Timing) -> Iterator[str]:
    """Throughput beside the latency: calls, and what a call moves and computes."""
    yield f"{1 / timing.median:,.0f} calls/s"
    if row.bytes:
        yield units.rate(row.bytes / timing.median)
    if row.flops:
        yield units.rate(row.flops / timing.median, "FLOP")


def _wall(timing: Timing) -> str:
    """`31.2 us = launch 6.1 + kernels 12.2 + gaps 0.4 + synchronize 4.8 + 7.7 unexplained`.

    The launch may overlap the kernels, and a hot call is quicker than a cold one: what is left over
    can be negative.
    """
    assert timing.wall_seconds is not None
    total = timing.wall_seconds
    parts = [("launch", timing.host_seconds), ("kernels", timing.kernel_seconds)]
    if timing.span_seconds is not None and timing.kernel_seconds is not None:
        parts.append(("gaps", max(0.0, timing.span_seconds - timing.kernel_seconds)))
    parts.append(("synchronize", timing.sync_seconds))
    known = [(name, value) for name, value in parts if value is not None]
    left = total - sum(value for _, value in known)
    text = " + ".join(f"{name} {1e6 * value:.1f}" for name, value in known)
    more = f"{'+' if left >= 0 else '-'} {1e6 * abs(left):.1f} us left over or overlapped"
    return f"{units.seconds(total)} from call to end of synchronize = {text} {more}"


def _sustained(timing: Timing) -> str:
    found = timing.sustained
    assert found is not None
    text = (
        f"{units.seconds(found.period)} a call at the end of {found.seconds:.1f} s of {found.by}, "
        f"{units.seconds(found.first_period)} at their start"
    )
    if found.clock_hz:
        text += f"; {_mhz(found.clock_hz)}"
    if found.watts is not None:
        text += f", {found.watts:.0f} W"
    return "; ".join([text, *found.held])


def _spans(timing: Timing) -> str:
    parts = []
    if timing.kernel_seconds is not None:
        parts.append(f"{units.seconds(timing.kernel_seconds)} in them")
    if timing.span_seconds is not None:
        parts.append(f"{units.seconds(timing.span_seconds)} from first start to last end")
    return ", ".join(parts)


def _memory(timing: Timing) -> str:
    found = timing.memory
    assert found is not None
    return (
        f"{units.count(found.allocations, 'allocation')} a call, {units.size(found.bytes)}, at "
        f"most {units.size(found.peak_bytes)} at once; {units.size(found.reserved_bytes)} reserved"
    )


def _working(timing: Timing) -> str:
    text = units.size(timing.working_bytes or 0)
    if timing.sets > 1:
        text += f", {timing.sets} sets of it in turn"
    if timing.cache_bytes:
        share = (timing.working_bytes or 0) / timing.cache_bytes
        text += f"; {share:.2g} times the cache of {units.size(timing.cache_bytes)}"
    return text


def _once(row: Row, timing: Timing) -> str:
    """What is paid before the first answer."""
    parts = []
    if row.build:
        cached = " from the cache" if row.build.cached else ""
        parts.append(f"built in {units.seconds(row.build.seconds)}{cached}")
    if timing.first_call_seconds is not None:
        parts.append(f"first call {units.seconds(timing.first_call_seconds)}")
    return ", ".join(parts)


def _input(one: Input) -> str:
    """`x: float32 [4096, 8192], -5.61 to 5.52, mean 0.001, 0 % zeros`."""
    if not one.dtype:
        return f"{one.name}: {one.text}"
    text = f"{one.name}: {one.dtype} {list(one.shape)}"
    if one.low is None or one.high is None or one.mean is None or one.zeros is None:
        return text
    spread = f"{one.low:.3g} to {one.high:.3g}, mean {one.mean:.2g}"
    return f"{text}, {spread}, {100 * one.zeros:.0f} % zeros"


def _clock(timing: Timing) -> str:
    assert timing.clock_hz
    text = _mhz(timing.clock_hz)
    if timing.watts:
        text += f", {timing.watts[0]:.0f} to {timing.watts[1]:.0f} W"
    if timing.celsius:
        text += f", {timing.celsius[0]:.0f} to {timing.celsius[1]:.0f} degrees"
    return text


def _mhz(hertz: tuple[float, float]) -> str:
    low, high = (f"{1e-6 * hz:.0f}" for hz in hertz)
    return f"{low} MHz" if low == high else f"{low} to {high} MHz"
