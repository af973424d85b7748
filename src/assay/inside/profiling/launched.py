"""What a call launches: kernels by what their names say, copies, memory, and the host's time."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..reading.names import decode
from ..reading.spans import WORK, Span, nested
from ..reading.trace import Trace
from . import RANGE


@dataclass(frozen=True)
class Work:
    """Work of one name: kernels, copies or fills."""

    name: str
    kind: str
    times: float
    """A call; no integer where calls differ."""
    seconds: float
    """Of all of it, a call."""
    bytes: int | None = None
    """Of a copy: a call's, where the trace says so."""

    @property
    def text(self) -> str:
        """What its name says, else the name."""
        found = decode(self.name)
        return found.text if found else self.name.removeprefix("void ")

    @property
    def bandwidth(self) -> float | None:
        """Bytes a second of a copy."""
        return self.bytes / self.seconds if self.bytes and self.seconds else None


@dataclass(frozen=True)
class Launched:
    """One variant on one case; all figures are a call's."""

    label: str
    case: str
    device: str
    calls: int
    work: tuple[Work, ...]
    """In the order in which it first came."""
    operators: tuple[str, ...]
    """The outermost of the first call, in order."""
    host_seconds: float
    """From where the call begins on the host to where it returns, under a profiler."""
    api_seconds: float
    """Of that in calls of CUDA: launches, copies, waits. The rest is Python and the dispatcher."""
    allocations: float
    allocated_bytes: float

    @property
    def kernels(self) -> float:
        """Launched a call."""
        return sum(w.times for w in self.work if w.kind == "kernel")

    @property
    def device_seconds(self) -> float:
        """Of all work of the device."""
        return sum(w.seconds for w in self.work)


def launched(trace: Trace, label: str, case: str, device: str) -> Launched:
    """What the calls of a recording launched, each in its range; the mean of them."""
    ranges = [span for span in trace.of("range") if span.name == RANGE]
    calls = len(ranges)

    def within(kind: str) -> list[Span]:
        spans = trace.of(kind)
        return [s for s in spans if any(r.start <= s.start <= r.end for r in ranges)]

    memory = [s for s in within("memory") if _bytes(s) > 0]
    outer = [n.span for n in nested(within("operator")) if not n.within]
    first = [s.name for s in outer if s.start <= ranges[0].end] if ranges else []
    return Launched(
        label=label,
        case=case,
        device=device,
        calls=calls,
        work=tuple(_work(trace.of(*WORK), calls)),
        operators=tuple(first),
        host_seconds=sum(r.seconds for r in ranges) / max(1, calls),
        api_seconds=sum(s.seconds for s in within("call")) / max(1, calls),
        allocations=len(memory) / max(1, calls),
        allocated_bytes=sum(_bytes(s) for s in memory) / max(1, calls),
    )


def _bytes(span: Span) -> int:
    return int(span.facts.get("Bytes", span.facts.get("bytes", 0)))


def _work(spans: Sequence[Span], calls: int) -> Iterator[Work]:
    groups: dict[tuple[str, str], list[Span]] = {}
    for span in sorted(spans, key=lambda s: s.start):
        groups.setdefault((span.name, span.kind), []).append(span)
    for (name, kind), each in groups.items():
        sizes = [_bytes(s) for s in each] if kind == "memcpy" else []
        yield Work(
            name,
            kind,
            len(each) / calls,
            sum(s.seconds for s in each) / calls,
            round(sum(sizes) / calls) if sizes and all(sizes) else None,
        )


def text(found: Launched, eager: Launched | None) -> Iterator[str]:
    """As lines of 80 columns; eager: the same case, to compare with."""
    fewer = ""
    if eager is not None and eager is not found and eager.kernels != found.kernels:
        off = found.kernels - eager.kernels
        fewer = f", {_number(abs(off))} {'more' if off > 0 else 'fewer'} than eager"
    on_gpu = bool(found.work)
    yield f"  {found.label}: " + (
        f"{_counted(found.kernels, 'kernel')}{fewer}; the GPU {_us(found.device_seconds)}"
        if on_gpu
        else f"no work of a GPU; {_counted(len(found.operators), 'operator')}"
    )
    share = (
        f"Python and dispatcher {_us(found.host_seconds - found.api_seconds)}, CUDA's calls "
        f"{_us(found.api_seconds)}"
    )
    yield f"    host {_us(found.host_seconds)}: {share if on_gpu else 'the work is in it'}"
    yield f"    {_counted(found.allocations, 'allocation')}, {found.allocated_bytes:,.0f} bytes"
    if not on_gpu:
        yield from _wrapped(", ".join(found.operators) or "no operator of torch's")
    for work in found.work:
        times = f"{_number(work.times)} x " if work.times != 1 else ""
        rate = (
            f", {work.bytes:,} bytes at {1e-9 * work.bandwidth:,.1f} GB/s"
            if (work.bytes and work.bandwidth)
            else ""
        )
        yield from _wrapped(f"{_us(work.seconds):>10}  {times}{work.text}{rate}")


def choices(found: Sequence[Launched]) -> Iterator[str]:
    """Of each label: which kernels its cases get, where they are not the same."""
    for label in dict.fromkeys(one.label for one in found):
        groups: dict[tuple[str, ...], list[str]] = {}
        for one in found:
            if one.label == label and one.work:
                names = tuple(w.text for w in one.work if w.kind == "kernel")
                groups.setdefault(names, []).append(one.case)
        if len(groups) < 2:
            continue
        yield f"{label}: the kernel varies with the case"
        for names, cases in groups.items():
            yield from _wrapped("; ".join(cases), "  ")
            for name in names:
                yield from _wrapped(name)


def _counted(count: float, noun: str) -> str:
    return f"{_number(count)} {noun}{'' if count == 1 else 's'}"


def _number(count: float) -> str:
    return f"{count:g}" if count == int(count) else f"{count:.1f}"


def _us(seconds: float) -> str:
    return f"{1e6 * seconds:,.1f} us"


def _wrapped(text: str, indent: str = "    ") -> Iterator[str]:
    yield from textwrap.wrap(text, 80, initial_indent=indent, subsequent_indent=indent + " " * 12)
