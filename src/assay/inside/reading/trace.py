"""Chrome traces, as torch.profiler writes them: JSON of events, plain or gzipped, to spans."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ...errors import AssayError
from .spans import Span

KINDS = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "gpu_memset": "memset",
    "cuda_runtime": "call",
    "cuda_driver": "call",
    "cpu_op": "operator",
    "user_annotation": "range",
    "gpu_user_annotation": "device range",
    "python_function": "python",
    "cpu_instant_event": "memory",
}
"""What torch.profiler calls a category, and what a span calls it."""
MEMORY = "[memory]"
"""A moment at which torch's allocator gave or took memory, with its `Bytes`."""
MICROSECOND = 1e-6
GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Trace:
    """What a file recorded, by whatever tool."""

    file: str
    tool: str
    spans: tuple[Span, ...]
    devices: tuple[str, ...] = ()

    def of(self, *kinds: str) -> tuple[Span, ...]:
        """The spans of these kinds."""
        return tuple(span for span in self.spans if span.kind in kinds)


def read_trace(path: Path) -> Trace:
    """Reads a Chrome trace. Raises AssayError for what is none."""
    try:
        raw = path.read_bytes()
        data = msgspec.json.decode(gzip.decompress(raw) if raw.startswith(GZIP) else raw)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
        raise AssayError(f"reading {path} as a Chrome trace: {error}") from None
    events = data.get("traceEvents") if isinstance(data, dict) else data
    if not isinstance(events, list):
        raise AssayError(f"reading {path} as a Chrome trace: it has no traceEvents")
    about = data if isinstance(data, dict) else {}
    devices = about.get("deviceProperties") or []
    names = tuple(str(d.get("name", "")) for d in devices if isinstance(d, dict))
    return Trace(str(path), "torch.profiler", tuple(_spans(path, events)), names)


def _spans(path: Path, events: list[Any]) -> list[Span]:
    """Complete events (`X`), pairs of begin and end (`B`, `E`) of one thread, and allocations."""
    made: list[tuple[dict[str, Any], float, float]] = []
    begun: dict[tuple[Any, Any], list[Any]] = {}
    for number, event in enumerate(events):
        try:
            phase, thread = event.get("ph"), (event.get("pid"), event.get("tid"))
            if phase == "X":
                made.append((event, float(event["ts"]), float(event.get("dur", 0))))
            elif phase == "i" and event.get("name") == MEMORY:
                made.append((event, float(event["ts"]), 0.0))
            elif phase == "B":
                begun.setdefault(thread, []).append(event)
            elif phase == "E" and begun.get(thread):
                first = begun[thread].pop()
                since = float(first["ts"])
                made.append((first, since, float(event["ts"]) - since))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise AssayError(
                f"reading {path}: event {number} is not one of a Chrome trace: {error!r}"
            ) from None
    # Counted from the first event: microseconds of a machine's uptime take most of a double.
    origin = min((start for _, start, _ in made), default=0.0)
    return [_span(event, start - origin, duration) for event, start, duration in made]


def _span(event: dict[str, Any], start: float, duration: float) -> Span:
    facts = event.get("args") or {}
    category = str(event.get("cat", ""))
    return Span(
        name=str(event.get("name", "")),
        kind=KINDS.get(category, category),
        start=start * MICROSECOND,
        seconds=duration * MICROSECOND,
        place=f"{event.get('pid')}/{event.get('tid')}",
        link=facts.get("correlation"),
        owner=facts.get("External id"),
        facts=facts,
    )
