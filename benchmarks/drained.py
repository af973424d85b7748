"""What a kernel leaves to the next: its own time, that of a read right after it, and of both.

    python -m benchmarks.drained [--repeats 30] [--to FILE]

A kernel has ended when its last store has left for the L2 cache, and what lies there may still wait
to be written to memory, up to all of the cache. So a kernel that lets the cache keep more of what
it writes ends sooner, and whoever comes next waits for it. Here each is followed by a read of
512 MB, which forces that out. What shortens a kernel's own time and not that of both has moved
work, not saved it: `copy by Triton` with hints to the cache shows how much there is to move.

Softmax and rmsnorm by the library, by eager and by both compiles, and copies of the same bytes, in
turns; CUPTI's times by torch.profiler, medians of the repeats. Before each, 512 MB are read too, so
that the cache is cold and clean. A line each, printed and in
benchmarks/results/<card>/drained.jsonl.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import triton
import triton.language as tl
from torch.profiler import ProfilerActivity, profile

import assay
from assay.ops.rmsnorm import rmsnorm
from assay.ops.softmax import softmax
from assay.session import Session
from benchmarks.first_operators import RESULTS, card
from benchmarks.peers import compiled

CASES = (
    (softmax, 8192, 8192, "float32"),
    (softmax, 8192, 8192, "bfloat16"),
    (softmax, 32768, 4096, "float32"),
    (softmax, 32768, 4096, "bfloat16"),
    (rmsnorm, 8192, 4096, "float32"),
    (rmsnorm, 8192, 4096, "bfloat16"),
)
OURS = ("cuda/held", "triton/held")
HINTS = (("", ""), ("evict_first", ""), ("", "evict_last"))
"""Of the loads, and of the stores."""
READ = 1 << 27
"""Elements of float32 that are read before and after."""
READING = "reduce_kernel"
"""In the names of the kernels that do it."""
TILE = 4096
Span = tuple[float, float]
"""Microseconds: begin and end."""


@triton.jit
def copy(y, x, LOADS: tl.constexpr, STORES: tl.constexpr, TILE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    tl.store(y + at, tl.load(x + at, eviction_policy=LOADS), eviction_policy=STORES)


def kernels(op: Any, inputs: tuple[torch.Tensor, ...]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names, and what launches each."""
    x, y = inputs[0], torch.empty_like(inputs[0])
    for name in OURS:
        yield name, partial(assay.torch_op(op, name, "eager"), *inputs)
    yield "eager", partial(op.reference, *inputs)
    for name, mode in (("compiled", None), ("max_autotune", "max-autotune-no-cudagraphs")):
        yield name, partial(compiled(op.reference, mode), *inputs)
    yield "copy", partial(y.copy_, x)
    for loads, stores in HINTS:
        hinted = partial(copy[(x.numel() // TILE,)], y, x, loads, stores, TILE, num_warps=8)
        yield " ".join(("copy by Triton", *filter(None, (loads, stores)))), hinted


def spans(events: list[tuple[str, float, float]]) -> Iterator[tuple[Span, Span]]:
    """Of each launch the span of its kernels, and of the kernels that read after it."""
    own: list[Span] = []
    after: list[Span] = []
    for name, begin, end in sorted(events, key=lambda event: event[1]):
        if READING in name:
            if own:
                after.append((begin, end))
            continue
        if after:
            yield whole(own), whole(after)
            own, after = [], []
        own.append((begin, end))
    if own and after:
        yield whole(own), whole(after)


def whole(parts: list[Span]) -> Span:
    """From the first begin to the last end."""
    return min(begin for begin, _ in parts), max(end for _, end in parts)


def measured(
    calls: list[tuple[str, Callable[[], Any]]], repeats: int
) -> dict[str, dict[str, float]]:
    """Medians in microseconds of each. Raises RuntimeError where launches and spans differ."""
    flushed = torch.ones(READ, device="cuda")
    for _, call in calls:
        call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(repeats):
            for _, call in calls:
                flushed.sum()
                call()
        flushed.sum()
        torch.cuda.synchronize()
    events = [
        (event.name, event.time_range.start, event.time_range.end)
        for event in seen.events()
        if str(event.device_type).endswith("CUDA") and "Memset" not in event.name
    ]
    found = list(spans(events))
    if len(found) != repeats * len(calls):
        raise RuntimeError(f"{len(found)} spans of {repeats * len(calls)} launches")
    made = {}
    for place, (name, _) in enumerate(calls):
        mine = found[place :: len(calls)]
        made[name] = {
            "itself": statistics.median(own[1] - own[0] for own, _ in mine),
            "read": statistics.median(read[1] - read[0] for _, read in mine),
            "both": statistics.median(read[1] - own[0] for own, read in mine),
        }
    return made


def main() -> None:
    """Prints and keeps the lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--to", default="")
    given = parser.parse_args()
    with TemporaryDirectory() as logs, Session(Path(logs)) as session:
        to = Path(given.to) if given.to else RESULTS / card(session.machine()) / "drained.jsonl"
    to.parent.mkdir(parents=True, exist_ok=True)
    with to.open("w") as file:
        for op, rows, n, dtype in CASES:
            x = torch.randn(rows, n, device="cuda", dtype=getattr(torch, dtype))
            inputs = (x,) if op is softmax else (x, torch.rand_like(x[0]) + 0.5)
            torch._dynamo.reset()
            found = measured(list(kernels(op, inputs)), given.repeats)
            for name, one in found.items():
                case = {"op": op.name, "rows": rows, "n": n, "dtype": dtype, "kernel": name}
                file.write(json.dumps(case | one) + "\n")
                print(
                    f"{op.name} {rows} x {n} {dtype:9}{name:34}"
                    f"{one['itself']:9.2f}{one['read']:9.2f}{one['both']:9.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
