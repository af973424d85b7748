"""Digits kept in pinned host memory, beside digits resident on the device: both are timed.

Before a burst the host lays its batches out one after the other in pinned memory; that is timed by
itself, by the host's clock. In the burst a second stream copies batch after batch into one of two
buffers on the device, the next while a step reads the other. The first copy is waited for, and is
part of the burst's time. Peers are the same as in the race: only their `Course` differs.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...clock.statistics import interval, ratio
from ...errors import AssayError
from .. import agreement
from ..data import Data
from ..model import Sizes, initial
from .bench import BURST, Course, course, timed
from .energy import joules_or_why
from .peers import PEERS
from .racing import SETTLING, Absent, orders

BUFFERS = 2


class Feed:
    """Copies of a burst's batches from pinned memory, on a stream of its own, a step ahead."""

    def __init__(self, batch: int, device: str):
        count, two = BURST * batch, BUFFERS * batch
        self.batch = batch
        self._images = torch.zeros((count, 28, 28), dtype=torch.uint8).pin_memory()
        self._labels = torch.zeros(count, dtype=torch.uint8).pin_memory()
        self.images = torch.zeros((two, 28, 28), dtype=torch.uint8, device=device)
        self.labels = torch.zeros(two, dtype=torch.uint8, device=device)
        self.order = torch.arange(two, device=device).repeat(BURST // BUFFERS)
        """(BURST * batch,): the steps of a burst read one buffer after the other."""
        self._stream = torch.cuda.Stream(device)

    def lay(self, images: torch.Tensor, labels: torch.Tensor, order: torch.Tensor) -> None:
        """Puts the digits at `order` (BURST * batch,), all on the host, in their order."""
        torch.index_select(images, 0, order, out=self._images)
        torch.index_select(labels, 0, order, out=self._labels)

    def _copy(self, step: int) -> None:
        here, there = self._part(step), self._part(step % BUFFERS)
        with torch.cuda.stream(self._stream):
            self.images[there].copy_(self._images[here], non_blocking=True)
            self.labels[there].copy_(self._labels[here], non_blocking=True)
            self._copied[step].record()

    def _part(self, number: int) -> slice:
        return slice(number * self.batch, (number + 1) * self.batch)

    def arrive(self, step: int) -> None:
        """What is launched next waits for the digits of this step; the first begins the copies."""
        if step == 0:
            self._copied = [torch.cuda.Event() for _ in range(BURST)]
            self._stream.wait_stream(torch.cuda.current_stream())
            for first in range(BUFFERS):
                self._copy(first)
        torch.cuda.current_stream().wait_event(self._copied[step])

    def leave(self, step: int) -> None:
        """After what was launched, the buffer of this step takes the digits of a later one."""
        if step + BUFFERS < BURST:
            self._stream.wait_stream(torch.cuda.current_stream())
            self._copy(step + BUFFERS)


@dataclass(frozen=True)
class Beside:
    """One peer with its digits on the device and in pinned host memory; seconds are of a step."""

    name: str
    resident: tuple[float, ...]
    pinned: tuple[float, ...]
    laying: float
    """Of the host, for the digits of a step; median."""
    apart: float
    """Between the two loss curves; see `agreement.curves`."""
    joules: tuple[float | None, float | None]
    """Resident, pinned."""
    no_joules: str

    @property
    def holds(self) -> bool:
        """Whether both trained alike; if not, their times are not to be compared."""
        return self.apart <= agreement.LOSS

    def median(self, kind: str) -> tuple[float, float, float]:
        """(low, median, high) of `resident` or `pinned`."""
        return interval(self.resident if kind == "resident" else self.pinned)

    @property
    def ratio(self) -> tuple[float, float, float]:
        """(low, middle, high) of pinned over resident, paired by burst."""
        rounds = range(len(self.resident))
        return ratio(self.resident, rounds, self.pinned, rounds)


def beside(
    data: Data,
    *,
    batch: int,
    names: Sequence[str],
    steps: int = 300,
    rate: float = 0.05,
    seed: int = 0,
    device: str = "cuda:0",
    seen: Callable[[str], None] = lambda _: None,
) -> tuple[list[Beside], list[Absent]]:
    """Trains each of these peers both ways, in turns, the same digits from the same weights.

    A peer that can't be made is absent with its reason. Raises AssayError for a name or a batch.
    """
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise AssayError(f"no peer {unknown[0]!r} on a GPU; there are {', '.join(PEERS)}")
    if batch * 2 > len(data.train):
        raise AssayError(f"--batch {batch}: there are {len(data.train)} training digits")
    images, labels = (torch.from_numpy(v.copy()) for v in (data.train.images, data.train.labels))
    parameters, absent = initial(Sizes(), seed), list[Absent]()
    there = course(images.to(device), labels.to(device), batch, rate)
    made: dict[tuple[str, str], Any] = {}
    feeds: dict[str, Feed] = {}
    for name in names:
        seen(f"making {name}, twice")
        try:
            feed = feeds[name] = Feed(batch, device)
            fed = Course(feed.images, feed.labels, batch, rate, feed.order, feed)
            both = {"resident": PEERS[name].make(parameters, there)}
            both["pinned"] = PEERS[name].make(parameters, fed)
        except Exception as error:  # noqa: BLE001 - whatever a peer raises is its reason
            absent.append(Absent(f"{name}, pinned", f"{type(error).__name__}: {error}"[:300]))
            continue
        made.update({(name, kind): one for kind, one in both.items()})
    seconds: dict[tuple[str, str], list[float]] = {key: [] for key in made}
    losses: dict[tuple[str, str], list[torch.Tensor]] = {key: [] for key in made}
    laid, shuffle = list[float](), random.Random(seed)
    for digits in orders(len(images), batch, steps // BURST + SETTLING, seed, device):
        there.order.copy_(digits)
        on_host = digits.cpu()
        for name, kind in shuffle.sample(list(made), len(made)):
            if kind == "pinned":
                begun = time.perf_counter()
                feeds[name].lay(images, labels, on_host)
                laid.append((time.perf_counter() - begun) / BURST)
            one = made[name, kind]
            seconds[name, kind].append(timed(one.run) / BURST)
            losses[name, kind].append(one.losses.clone())
    found = []
    for name in dict.fromkeys(name for name, _ in made):
        curves = [torch.cat(losses[name, kind]).tolist() for kind in ("resident", "pinned")]
        energy = [joules_or_why(made[name, kind]) for kind in ("resident", "pinned")]
        found.append(
            Beside(
                name,
                tuple(seconds[name, "resident"][SETTLING:]),
                tuple(seconds[name, "pinned"][SETTLING:]),
                sorted(laid)[len(laid) // 2],
                agreement.curves(curves[1], curves[0]),
                (energy[0][0], energy[1][0]),
                energy[0][1] or energy[1][1],
            )
        )
    return found, absent
