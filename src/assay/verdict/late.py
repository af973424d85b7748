"""Work that goes on after the call: on another thread, or on another stream of a GPU.

What a call left in memory when it returned is kept, and compared with what lies there once its
threads have ended, or the GPU has nothing left to do. On a GPU the caller's stream is kept busy for
one run, and only behind that get the inputs their values, so that work which does not wait for the
caller's stream reads poison, and work for which that stream does not wait comes late.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch

from .buffers import sparse
from .chunks import same_bytes
from .shipped import raw_of

STILL_WRITTEN = "output {} was still being written when the call returned"
NOT_WAITING = (
    "it does not wait for the caller's stream: right while nothing else runs on the GPU, and not "
    "when the inputs are still being written"
)
MOST_SECONDS = 0.2
"""How long to wait for threads that a call left behind; idle workers of a pool never end."""
STEP_SECONDS = 0.001
TASKS = Path("/proc/self/task")
BUSY_SECONDS = 0.02
SPIN_CYCLES = 40_000_000
"""For torch.cuda._sleep: as long."""


@dataclass(frozen=True)
class Threads:
    """Those that there are at one moment."""

    python: frozenset[threading.Thread]
    system: frozenset[str]
    """Ids of all threads of this process, where the system tells them."""


def threads() -> Threads:
    """The threads of this process."""
    system = os.listdir(TASKS) if TASKS.is_dir() else []
    return Threads(frozenset(threading.enumerate()), frozenset(system))


def wait(before: Threads) -> None:
    """Waits until what was started since has ended or, if it is no thread of Python's, sleeps."""
    end = time.monotonic() + MOST_SECONDS
    while time.monotonic() < end:
        now = threads()
        working = any(thread.is_alive() for thread in now.python - before.python)
        if not working and not any(_runs(task) for task in now.system - before.system):
            return
        time.sleep(STEP_SECONDS)


def _runs(task: str) -> bool:
    """Whether a thread is on a processor, or waits for one."""
    try:
        stat = (TASKS / task / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # ended while we looked
        return False
    return stat.rpartition(")")[2].split()[0] == "R"


def same(now: torch.Tensor, held: torch.Tensor | None, path: Path) -> bool:
    """Whether bytes are those that were held, or else shipped to `path`, when the call returned."""
    if held is not None:
        return torch.equal(now, held)
    return not now.numel() or same_bytes(
        now, torch.from_numpy(numpy.memmap(path, numpy.uint8, "c"))
    )


@contextmanager
def busy(
    device: str, inputs: list[torch.Tensor], poison: int, *, in_place: bool = False
) -> Iterator[None]:
    """A side stream as the current one, busy for a while; then the inputs get their values on it.

    Until then they hold poison; in_place: their values, which are written over themselves, so that
    nothing else differs: what comes before a kernel can change the order in which its atomics add.
    """
    places = _places(inputs)
    values = [(place, place.clone(memory_format=torch.contiguous_format)) for place in places]
    for place in places:
        if not in_place:
            place.copy_(_pattern(place, poison))
    torch.cuda.synchronize(device)
    end = time.monotonic() + BUSY_SECONDS
    with torch.cuda.stream(torch.cuda.Stream(device)):
        torch.cuda._sleep(SPIN_CYCLES)
        for place, value in values:
            place.copy_(value)
        yield
    time.sleep(max(0.0, end - time.monotonic()))  # to wait for the GPU takes a core meanwhile


def _places(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The memory of the inputs, each once: the whole block, or where that has gigabytes of nothing
    between the elements of a tensor, these alone."""
    blocks = {x.untyped_storage().data_ptr(): x if sparse(x) else raw_of(x, True) for x in inputs}
    return list(blocks.values())


def _pattern(place: torch.Tensor, poison: int) -> torch.Tensor:
    """One element all of whose bytes are the poison."""
    raw = torch.full((place.element_size(),), poison, dtype=torch.uint8, device=place.device)
    return raw.view(place.dtype)
