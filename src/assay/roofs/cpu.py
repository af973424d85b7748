"""What is measured on a CPU, hot as kernels are timed there: traffic by size, matrix products.

The threads are pinned, each to a processor of its own, so that none is moved between samples.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ..clock import cpu
from ..errors import NotRun
from .sampling import Ask, Candidate

PIN_SECONDS = 0.1
ERRORS = {"float32": 1e-5, "float64": 1e-13}
"""Root mean square error over that of the values, at most."""

Plan = tuple[str, Callable[[], Ask]]


def plans(threads: int, moved: Sequence[int], matrices: Sequence[int]) -> list[Plan]:
    """Names of ceilings, and what prepares each."""
    pin(threads)
    found: list[Plan] = []
    for size in moved:
        for name, make in (("read", read), ("write", write), ("copy", copy)):
            found.append((f"{name} {size} bytes hot", partial(make, size)))
    for kind in ERRORS:
        for n in matrices:
            found.append((f"{kind} matrix {n}", partial(matrix, kind, n)))
    return found


def pin(threads: int) -> list[int]:
    """Gives each thread that computes a processor of its own; those processors.

    Of more threads than processors, and where the system can't, none is pinned.
    """
    torch.set_num_threads(threads)
    if not hasattr(os, "sched_setaffinity") or Waiting().share() is None:
        return []
    allowed = sorted(os.sched_getaffinity(0))
    if threads > len(allowed):
        return []
    for thread, processor in zip(_computing(threads), allowed):
        os.sched_setaffinity(thread, {processor})
    return allowed[:threads]


def _computing(threads: int) -> list[int]:
    """Ids of the threads that share a sum and a product: this one, and the busiest others.

    The process has others, which sleep; one of those on a processor would leave two on another.
    """
    x = torch.randn(1 << 20)
    before = _busy()
    end = time.monotonic() + PIN_SECONDS
    while time.monotonic() < end:
        torch.mm(x.view(1024, 1024), x.view(1024, 1024))
        torch.sum(x)
    spent = {thread: ticks - before.get(thread, 0) for thread, ticks in _busy().items()}
    main = threading.get_native_id()
    others = sorted((t for t in spent if t != main), key=lambda t: -spent[t])
    return [main, *others[: threads - 1]]


def _busy() -> dict[int, int]:
    """Nanoseconds that each thread of this process has run."""
    return {thread: ran for thread, (ran, _) in _scheduled().items()}


def _scheduled() -> dict[int, tuple[int, int]]:
    """Of each thread of this process, nanoseconds that it ran, and that it waited for a processor
    though it could have run (Linux, Documentation/scheduler/sched-stats)."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        ran, waited, _ = (task / "schedstat").read_text().split()
        found[int(task.name)] = int(ran), int(waited)
    return found


class Waiting:
    """How much of their time this process's threads wait because others have the processors."""

    def __init__(self) -> None:
        self._before = self._now()

    def share(self) -> float | None:
        """Since this was made; None where the system does not tell."""
        if self._before is None or (now := self._now()) is None:
            return None
        ran, waited = (after - before for after, before in zip(now, self._before))
        return waited / max(1, ran + waited)

    @staticmethod
    def _now() -> tuple[int, int] | None:
        try:
            of_each = _scheduled().values()
        except OSError:  # no Linux, or one that keeps no such statistics
            return None
        return sum(ran for ran, _ in of_each), sum(waited for _, waited in of_each)


def read(size: int) -> Ask:
    """x -> its sum. bytes: size read; FLOP: one a float."""
    x = torch.randn(size // 4)
    out = torch.empty(())
    found = [
        _hot("torch.sum", lambda: torch.sum(x, dim=0, out=out)),
        _hot("torch.dot", lambda: torch.dot(x, x, out=out)),
        _hot("torch.amax", lambda: torch.amax(x, dim=0, out=out)),
    ]
    return Ask("read", "B/s", size, found, bytes=size, cache="hot")


def write(size: int) -> Ask:
    """y = a constant. bytes: size written; FLOP: 0."""
    y = torch.empty(size // 4)
    found = [_hot("torch fill_", lambda: y.fill_(1.5)), _hot("torch zero_", lambda: y.zero_())]
    return Ask("write", "B/s", size, found, bytes=size, cache="hot")


def copy(size: int) -> Ask:
    """y = x. bytes: half of size read, half written; FLOP: 0."""
    x = torch.randn(size // 8)
    y = torch.empty_like(x)
    found = [
        _hot("torch copy_", lambda: y.copy_(x)),
        _hot("torch.neg", lambda: torch.neg(x, out=y)),
    ]
    return Ask("copy", "B/s", size, found, bytes=size, cache="hot")


def matrix(kind: str, n: int) -> Ask:
    """c = a b, of n x n normal values. bytes: 3 n^2 floats; FLOP: 2 n^3."""
    dtype = getattr(torch, kind)
    a, b, c = (torch.randn(n, n, dtype=dtype) for _ in range(3))
    torch.mm(a, b, out=c)
    truth = a[:16].double() @ b.double()
    error = float((c[:16].double() - truth).pow(2).mean().sqrt() / truth.pow(2).mean().sqrt())
    if error > ERRORS[kind]:
        raise NotRun(f"torch.mm erred by {error:.1e}: it did not compute in {kind}")
    found = [_hot("torch.mm", lambda: torch.mm(a, b, out=c))]
    return Ask(f"{kind} matrix", "FLOP/s", 2 * n**3, found, shape=f"{n}^3")


def _hot(by: str, call: Callable[[], Any]) -> Candidate:
    call()
    begin = time.perf_counter()
    call()
    return Candidate(by, cpu.Cpu(call, None, cpu.calls_for(time.perf_counter() - begin, False)))
