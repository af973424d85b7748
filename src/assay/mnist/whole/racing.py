"""The race of whole steps on a GPU: bursts of all peers in turns, by device time; then the verdict.

Rounds go through all peers in random order, one burst each, of the same digits from the same
weights. A peer that can't be made or run is left out with its reason. The verdict is `race.judged`:
no winner without gradients, loss curves and accuracies that agree.

A gradient in tf32 or bf16 may be off by 1e-2 of its layer's largest, or by KINKS times what
rounding operands to tf32 alone does in float64 (see fast/rounded.py), if that is more: near a kink
it takes the other side, for all who round.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import torch

from ...errors import AssayError
from .. import agreement
from ..data import Data
from ..fast import rounded
from ..model import Parameters, Sizes, initial
from ..race import Peer, Ran
from ..train import accuracy, order
from .bench import BURST, Course, course, timed, wait
from .energy import joules_or_why
from .peers import AUTOTUNED, PEERS, Whole

KINKS = 2.0
SETTLING = 2
"""Bursts of each peer that are not counted."""


@dataclass(frozen=True)
class Absent:
    """A peer that did not race, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Result:
    """What was seen of all peers at one batch."""

    batch: int
    ran: tuple[Ran, ...]
    absent: tuple[Absent, ...]
    host: Mapping[str, float]
    """Seconds of a step by the host's clock, launch and waiting included, median of 5 bursts."""
    bytes: Mapping[str, int]
    """Of device memory that making the peer took."""
    joules: Mapping[str, float]
    """Of a step, by NVML (energy.py): of ours that is first and the fastest other of its class."""
    no_joules: str
    """Why there are none, if there are none."""


def chosen(names: Sequence[str], batch: int) -> tuple[dict[str, Whole], list[Absent]]:
    """The peers of these names, or all that race at this batch. Raises AssayError."""
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise AssayError(f"no peer {unknown[0]!r} on a GPU; there are {', '.join(PEERS)}")
    picked = {n: PEERS[n] for n in names} if names else dict(PEERS)
    absent = []
    for name, peer in list(picked.items()):
        if not names and peer.slow and batch != AUTOTUNED:
            absent.append(Absent(name, f"{peer.slow}: races at batch {AUTOTUNED}, or if named"))
            del picked[name]
    if not any(p.ours for p in picked.values()) or all(p.ours for p in picked.values()):
        raise AssayError(f"a race is one of ours and a peer at least, not {', '.join(picked)}")
    return picked, absent


def race(
    data: Data,
    *,
    batch: int,
    steps: int = 300,
    rate: float = 0.05,
    seed: int = 0,
    peers: Sequence[str] = (),
    device: str = "cuda:0",
    until: float = float("inf"),
    seen: Callable[[str], None] = lambda _: None,
) -> Result:
    """Races at one batch. until: by time.monotonic, when no further peer is made.

    Raises AssayError for a batch or peers that can't race.
    """
    if batch * 2 > len(data.train):
        raise AssayError(f"--batch {batch}: there are {len(data.train)} training digits")
    picked, absent = chosen(peers, batch)
    parameters = initial(Sizes(), seed)
    images = torch.from_numpy(data.train.images.copy()).to(device)
    labels = torch.from_numpy(data.train.labels.copy()).to(device)
    shared = course(images, labels, batch, rate)
    bursts = orders(len(data.train), batch, steps // BURST + SETTLING, seed, device)
    shared.order.copy_(bursts[0])
    judge = _judge(parameters, shared)
    made, agreed, sizes, firsts = {}, {}, {}, {}
    for name, peer in picked.items():
        if time.monotonic() > until:
            absent.append(Absent(name, "no time left to make it"))
            continue
        seen(f"making {name}")
        begun, before = time.perf_counter(), torch.cuda.memory_allocated()
        try:
            one = peer.make(parameters, shared)
            agreed[name] = judge(one.gradients(), peer.precision)
        except Exception as error:  # noqa: BLE001 - whatever a peer raises is its reason
            absent.append(Absent(name, f"{type(error).__name__}: {error}".splitlines()[0][:300]))
            continue
        made[name], firsts[name] = one, time.perf_counter() - begun
        sizes[name] = torch.cuda.memory_allocated() - before
    seen(f"racing {', '.join(made)}")
    seconds, losses = _rounds(made, shared, bursts, seed)
    right = {name: accuracy(one, data.test) for name, one in made.items()}
    host = {name: _host(one) for name, one in made.items()}
    energy = {name: joules_or_why(made[name]) for name in _measured(seconds, picked)}
    ran = tuple(
        Ran(
            name,
            _peer(picked[name], shared, device),
            {"total": tuple(seconds[name][SETTLING:])},
            tuple(range(len(bursts) - SETTLING)),
            tuple(torch.cat(losses[name]).tolist()),
            right[name],
            agreed[name],
            firsts[name],
            BURST,
        )
        for name in made
    )
    known = {name: found for name, (found, _) in energy.items() if found is not None}
    why = next((why for found, why in energy.values() if found is None), "")
    return Result(batch, ran, tuple(absent), host, sizes, known, why)


def _measured(seconds: Mapping[str, Sequence[float]], peers: Mapping[str, Whole]) -> list[str]:
    """Ours that is first, and the fastest other of its class of precision."""
    ours = next((name for name in seconds if peers[name].ours), None)
    if ours is None:
        return []
    precision = peers[ours].precision
    others = [n for n in seconds if not peers[n].ours and peers[n].precision == precision]
    return [ours, *sorted(others, key=lambda name: median(seconds[name]))[:1]]


def _peer(whole: Whole, shared: Course, device: str) -> Peer:
    return Peer(lambda p: whole.make(p, shared), whole.precision, whole.ours, device)


def orders(count: int, batch: int, bursts: int, seed: int, device: str) -> list[torch.Tensor]:
    """(BURST * batch,) int64 of each burst, on the device: epochs one after the other."""
    need, parts, epoch = bursts * BURST * batch, list[torch.Tensor](), 0
    while sum(map(len, parts)) < need:
        whole = order(seed, epoch, count)
        parts.append(whole[: count // batch * batch])
        epoch += 1
    return list(torch.cat(parts)[:need].to(device).split(BURST * batch))


def _judge(
    parameters: Parameters, shared: Course
) -> Callable[[Parameters, str], tuple[agreement.Agreement, ...]]:
    """What compares gradients of the first step of the burst, at these parameters."""
    at = shared.part(0)
    true = agreement.truth(parameters, shared.images, shared.labels, at)
    _, coarse = rounded.truth(parameters, shared.images, shared.labels, at)
    kinks = max(a.error for a in agreement.gradients(coarse, true, "tf32"))

    def judge(found: Parameters, precision: str) -> tuple[agreement.Agreement, ...]:
        compared = agreement.gradients(found, true, precision)
        if precision in ("tf32", "bf16"):
            compared = [replace(a, allowed=max(a.allowed, KINKS * kinks)) for a in compared]
        return tuple(compared)

    return judge


def _rounds(
    made: Mapping[str, Any], shared: Course, bursts: list[torch.Tensor], seed: int
) -> tuple[dict[str, list[float]], dict[str, list[torch.Tensor]]]:
    """Seconds a step and losses of every burst."""
    seconds: dict[str, list[float]] = {name: [] for name in made}
    losses: dict[str, list[torch.Tensor]] = {name: [] for name in made}
    shuffle = random.Random(seed)
    for digits in bursts:
        shared.order.copy_(digits)
        for name in shuffle.sample(list(made), len(made)):
            seconds[name].append(timed(made[name].run) / BURST)
            losses[name].append(made[name].losses.clone())
    return seconds, losses


def _host(peer: Any) -> float:
    found = []
    for _ in range(5):
        wait(peer.device)
        begun = time.perf_counter()
        peer.run()
        wait(peer.device)
        found.append((time.perf_counter() - begun) / BURST)
    return sorted(found)[2]
