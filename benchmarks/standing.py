"""What a report says beside the targets: losses, clocks, and target 15.

A loss is a case where ours is slower than the fastest peer, and the whole 95 % interval says so.
All of them are told, worst first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.clock.statistics import seconds
from assay.types import Row
from benchmarks import targets
from benchmarks.sweep import CASTS, PEERS

MUST, STRETCH = 1.0, 0.5
"""Target 15: our call's time of the host over eager's, at most."""


@dataclass(frozen=True)
class Loss:
    """A case in which a peer is faster than the fastest of ours."""

    ours: Row
    peer: Row
    interval: targets.Interval

    @property
    def text(self) -> str:
        """`0.930 (0.915 to 0.944) gelu n=65536 dtype=float32: triton 2.1 us, eager 1.9 us`."""
        ours, peer = self.ours.timing, self.peer.timing
        assert ours is not None
        assert peer is not None
        clocks = dict.fromkeys((ours.method, peer.method))
        told = f" ({' against '.join(clocks)})" if len(clocks) > 1 else ""
        return (
            f"{targets.shown(self.interval)} {self.ours.op} {self.ours.case.label}: "
            f"`{self.ours.label}` {seconds(ours.median)}, "
            f"`{self.peer.label}` {seconds(peer.median)}{besides(self.peer)}{told}"
        )


def casts(row: Row) -> bool:
    """Whether torch rounds a result of this peer's, by a kernel that is no part of it."""
    return (row.op, row.variant) in CASTS and row.case.values.get("dtype") != "float32"


def besides(row: Row) -> str:
    """What is in a peer's time that is not its own."""
    return ", a cast in it" if casts(row) else ""


def losses(rows: Sequence[Row]) -> list[Loss]:
    """All of them, worst first."""
    found = []
    for op, label in dict.fromkeys((r.op, r.case.label) for r in rows if r.device != "cpu"):
        mine = [r for r in rows if (r.op, r.case.label) == (op, label)]
        ours = targets.best(mine, ways=targets.OURS)
        peers = targets.middle([r for r in mine if r.variant in PEERS])
        if ours is None or not peers:
            continue
        peer = min(peers, key=lambda row: targets.against(mine, ours, row).middle)
        interval = targets.against(mine, ours, peer).shown
        if interval[2] < 1:
            found.append(Loss(ours, peer, interval))
    return sorted(found, key=lambda loss: loss.interval[1])


def compared(rows: Sequence[Row]) -> int:
    """Cases in which ours and a peer were timed."""
    timed = [r for r in rows if r.timing and r.device != "cpu"]
    both = [
        {(r.op, r.case.label) for r in timed if r.way in targets.OURS},
        {(r.op, r.case.label) for r in timed if r.variant in PEERS},
    ]
    return len(both[0] & both[1])


def lost(rows: Sequence[Row]) -> Iterator[str]:
    """Lines of text."""
    found = losses(rows)
    yield f"losses to the fastest peer: {len(found)} of {compared(rows)} cases"
    yield from (f"  {loss.text}" for loss in found)


def clocks(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each operator: what its kernels were timed with, and why by events."""
    yield "clocks: CUPTI where a call is one kernel, else events, which may lie 0.3 us apart"
    for op in dict.fromkeys(row.op for row in rows if row.timing):
        timed = [row for row in rows if row.op == op and row.timing]
        counts: dict[str, set[int | None]] = {}
        for row in timed:
            assert row.timing is not None
            if row.timing.method == "events":
                counts.setdefault(row.variant, set()).add(row.timing.kernels)
        by_events = sum(row.timing.method == "events" for row in timed if row.timing)
        processes = round(len(timed) / len(targets.middle(timed)), 1)
        parts = [f"{len(timed) - by_events} of {len(timed)} by {method(timed)}"]
        if by_events:
            told = (f"{name} ({several(found)})" for name, found in sorted(counts.items()))
            parts.append(f"{by_events} by events: {', '.join(told)}")
        parts += [f"{processes:g} processes"] if processes > 1 else []
        yield f"  {op}: {'; '.join(parts)}"


def method(timed: Sequence[Row]) -> str:
    """The clock that is not events: `wall` on a CPU."""
    names = {row.timing.method for row in timed if row.timing} - {"events"}
    return " and ".join(sorted(name.replace("cupti", "CUPTI") for name in names)) or "CUPTI"


def several(counts: set[int | None]) -> str:
    """`2 kernels`, `21 to 27 kernels`."""
    known = sorted(count for count in counts if count is not None)
    if not known:
        return "kernels not counted"
    many = f"{known[0]}" if len(known) == 1 else f"{known[0]} to {known[-1]}"
    return f"{many} kernels"


CALL = re.compile(r"target 15: (.*?) \(.*: ([\d.]+) \(([\d.]+) to ([\d.]+)\) x")


def host(place: Path) -> Iterator[str]:
    """Target 15 of what benchmarks.host kept in a folder; a reason where it kept nothing."""
    kept = lines_of(place)
    calls = [(f[1], tuple(map(float, f.groups()[1:]))) for line in kept if (f := CALL.search(line))]
    head = "  target 15: a call's time of the host over eager's"
    if not calls:
        yield f"{head}: not measured: no host.jsonl or host.txt lies beside the rows"
    else:
        name, (middle, low, high) = max(calls, key=lambda call: call[1][0])
        least = min(call[1][0] for call in calls)
        words = [
            # The ratio has to be small: held from above, met and missed swap.
            targets.word(1 / asked, (1 / high, 1 / middle, 1 / low))
            for asked in (MUST, STRETCH)
        ]
        yield (
            f"{head}, {len(calls)} calls: {least:.2f} to {middle:.2f}, "
            f"worst {name} {middle:.2f} ({low:.2f} to {high:.2f}), at most {MUST:g}: {words[0]}, "
            f"stretch {STRETCH:g}: {words[1].replace('missed', 'not met')}"
        )
    yield (
        "  target 15: the same over Triton's and Numba's, stretch 0.3 and 0.2: not measured: "
        "benchmarks.host times eager alone beside ours"
    )


def lines_of(place: Path) -> list[str]:
    """What benchmarks.host printed, or would print of the samples that it kept."""
    if (place / "host.jsonl").is_file():
        from benchmarks.host import text

        found = map(json.loads, (place / "host.jsonl").read_text().splitlines())
        return [text(line) for line in found if line.get("kind") == "host"]
    return (place / "host.txt").read_text().splitlines() if (place / "host.txt").is_file() else []
