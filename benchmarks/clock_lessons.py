"""What the course notes say of timing, shown on one GPU: each wrong way beside the right one.

    python -m benchmarks.clock_lessons

A lesson is a function that gives the numbers it is about; a line a lesson goes to
benchmarks/results/<card>/clock_lessons.jsonl. Ids are those of docs/coverage.md.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.clock import events, graphs
from assay.clock.gpu import gpu
from benchmarks.first_operators import RESULTS, folder_of

REPEATS = 15
Call = Callable[[], Any]


def main() -> None:
    """Runs every lesson."""
    card = torch.cuda.get_device_name(0)
    place = RESULTS / folder_of(card)
    place.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, lesson in LESSONS.items():
        found = lesson()
        print(name, json.dumps(found), flush=True)
        lines.append(
            json.dumps({"lesson": name, "card": card, "torch": torch.__version__, **found})
        )
    file = place / "clock_lessons.jsonl"
    file.write_text("\n".join(lines) + "\n")
    print(f"rows: {file.relative_to(Path(__file__).parents[1])}")


def three_clocks() -> dict[str, float]:
    """T01, T05, G13: a spin of about 10 ms by a clock that does not wait, one that does, events."""
    call = _spin(0.01)
    return {"naive": _naive(call), "synced": _synced(call), "events": _events(call)}


def queued_before() -> dict[str, float]:
    """T04: 5 ms of work were queued before a spin of 100 us: who pays for them?"""
    before, call = _spin(0.005), _spin(1e-4)

    def late_wait() -> float:
        before()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    def both_wait() -> float:
        before()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    clock = _clock(call)
    inside = statistics.median((before(), clock.sample())[1] for _ in range(REPEATS))
    return {"one wait": _median(late_wait), "two waits": _median(both_wait), "events": inside}


def overhead_and_rate() -> dict[str, float]:
    """T09: t = overhead + bytes / rate, by least squares over cold copies of 64 MB to 1 GB.

    Below that an L2 keeps what was written, and its bytes are not in the time.
    """
    sizes, times = [], []
    for power in range(26, 31):
        x = torch.randint(0, 255, (1 << power,), dtype=torch.uint8, device="cuda")
        y = torch.empty_like(x)
        sizes.append(2.0 * x.numel())
        times.append(_events(lambda x=x, y=y: y.copy_(x)))
    slope, overhead = np.polyfit(sizes, times, 1, w=1 / np.asarray(times))
    fitted = overhead + slope * np.asarray(sizes)
    off = float(np.max(np.abs(fitted / np.asarray(times) - 1)))
    return {"overhead": float(overhead), "rate": float(1 / slope), "largest residual": off}


def queue_depth() -> dict[str, float]:
    """T10: the host runs ahead of spins of 100 us until the queue of launches is full."""
    call = _spin(1e-4)
    torch.cuda.synchronize()
    begin, taken = time.perf_counter(), []
    for _ in range(1500):
        call()
        taken.append(time.perf_counter() - begin)
    torch.cuda.synchronize()
    whole = time.perf_counter() - begin
    steps = np.diff(taken)
    # Full is where launches wait from then on; the host may be interrupted once before.
    waits = np.lib.stride_tricks.sliding_window_view(steps, 20).min(axis=1) > 5e-5
    return {
        "depth": float(np.argmax(waits) + 1) if waits.any() else 1500.0,
        "launch": float(np.median(steps[:200])),
        "queued after 500": taken[499],
        "whole": whole,
    }


def launches() -> dict[str, float]:
    """T14: launches a second from the host, and nodes a second of a CUDA graph."""
    word = torch.zeros(8, device="cuda")

    def call() -> None:
        word.add_(1.0)

    call()

    def many() -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(1000):
            call()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / 1000

    one = _median(many)
    node = graphs.period(call, 2e-6).seconds
    return {"eager call": one, "a second": 1 / one, "graph node": node, "nodes a second": 1 / node}


def mlp_by_time() -> dict[str, float]:
    """P25: an MLP of 10 layers timed by time.time() without a wait, and by how much that errs."""
    layers = [torch.nn.Linear(4096, 4096) for _ in range(10)]
    net = torch.nn.Sequential(*[x for layer in layers for x in (layer, torch.nn.ReLU())]).cuda()
    x = torch.randn(4096, 4096, device="cuda")

    def call() -> None:
        with torch.no_grad():
            net(x)

    call()
    naive, right = _naive(call), _events(call)
    return {"time.time()": naive, "events": right, "factor": right / naive}


def heat() -> dict[str, float]:
    """T07: samples of one GEMM over some seconds: how far first and last tenth are apart."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty_like(a)
    clock = _clock(lambda: torch.mm(a, b, out=c))
    begin, samples = time.monotonic(), []
    while time.monotonic() - begin < 3:
        samples.append(clock.sample())
    tenth = max(1, len(samples) // 10)
    first, last = (statistics.median(part) for part in (samples[:tenth], samples[-tenth:]))
    return {"first tenth": first, "last tenth": last, "samples": float(len(samples))}


LESSONS: dict[str, Callable[[], dict[str, float]]] = {
    "T01 T05 G13 three clocks": three_clocks,
    "T04 queued before": queued_before,
    "T09 overhead and rate": overhead_and_rate,
    "T10 queue depth": queue_depth,
    "T14 launches": launches,
    "P25 MLP by time.time()": mlp_by_time,
    "T07 heat": heat,
}


def _spin(seconds: float) -> Call:
    cycles = int(seconds * 1.98e9)
    return lambda: torch.cuda._sleep(cycles)


def _clock(call: Call) -> events.Events:
    shared = gpu("cuda:0")
    call()
    host = events.host_seconds(call)
    return events.Events(call, None, shared.flush, host, fixed=shared.fixed or 0.0)


def _events(call: Call) -> float:
    clock = _clock(call)
    return statistics.median(clock.sample() for _ in range(REPEATS))


def _naive(call: Call) -> float:
    def once() -> float:
        begin = time.time()
        call()
        return time.time() - begin

    return _median(once)


def _synced(call: Call) -> float:
    def once() -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    return _median(once)


def _median(once: Callable[[], float]) -> float:
    taken = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        taken.append(once())
    torch.cuda.synchronize()
    return statistics.median(taken)


if __name__ == "__main__":
    main()
