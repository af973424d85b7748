"""The race: peers train the same digits from the same weights in turns, phase by phase.

A peer is a function that makes a trainer with the phases of `Network`; PEERS is their table. Rounds
go through all peers in random order, one step each, so that what disturbs the machine disturbs all.
A phase ends when the device has done it. The first steps, which build and warm up, are not counted.

A winner is ours only if it agrees with the truth: gradients within the band of its precision class
against autograd in float64, loss curves of at least 100 steps alike, accuracy within half a point.
Loss curves may be 2 % of the first loss apart, or as far as those of two of PyTorch's own forms of
the same class are in the same race: from the same weights, rounding alone drives them apart.
Then the interval of the ratio of total times decides, against each peer of the same class.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import torch

from ..clock.statistics import interval, ratio, verdict
from ..errors import AssayError
from . import agreement
from .agreement import Agreement, tensor_cores
from .data import Data
from .fast.network import Fast
from .model import Parameters, Sizes, initial
from .network import Network
from .train import accuracy, order
from .twin import Twin

PHASES = ("load", "forward", "backward", "update", "zero")
WARM = 3
"""Steps of each peer before those that are counted."""
LEAST = 100
"""Steps that a verdict needs."""
POINTS = 0.005
"""Most that accuracies may differ: half a point."""


@dataclass(frozen=True)
class Peer:
    """One who races: how its trainer is made of parameters, its class of precision, and if ours."""

    make: Callable[[Parameters], Any]
    precision: str
    ours: bool = False
    device: str = "cpu"


def _eager_on_a_gpu(parameters: Parameters) -> Twin:
    tensor_cores()
    return Twin(parameters, device="cuda:0")


PEERS: dict[str, Peer] = {
    "cpp": Peer(lambda p: Network(p, "cpp"), "float32", ours=True),
    "eager": Peer(Twin, "float32"),
    "eager channels_last": Peer(lambda p: Twin(p, channels_last=True), "float32"),
    "compile": Peer(lambda p: Twin(p, compiled=True), "float32"),
    "fast": Peer(Fast, "tf32", ours=True, device="cuda"),
    "naive": Peer(lambda p: Network(p, "cuda"), "float32", ours=True, device="cuda"),
    "eager on the GPU": Peer(_eager_on_a_gpu, "tf32", device="cuda"),
}
"""By name. Those of a GPU show its phases, unfused; whole/ races whole steps there."""


@dataclass(frozen=True)
class Ran:
    """What was seen of one peer."""

    name: str
    peer: Peer
    seconds: Mapping[str, tuple[float, ...]]
    """Of each phase, and `total`, step by step in rounds."""
    rounds: tuple[int, ...]
    losses: tuple[float, ...]
    accuracy: float
    agreements: tuple[Agreement, ...]
    first: float
    """Seconds of the very first step, with what it builds."""
    each: int = 1
    """Steps of which a sample of `seconds` is the mean."""

    def median(self, phase: str) -> tuple[float, float, float]:
        """(low, median, high) seconds of a phase or the `total`."""
        return interval(self.seconds[phase])


@dataclass(frozen=True)
class Comparison:
    """Ours against one peer: how many times longer that takes, and what may be said of it."""

    peer: str
    low: float
    ratio: float
    high: float
    word: str
    """faster, slower, same, cannot tell; or `no winner`."""
    reasons: tuple[str, ...] = ()
    """Why nobody wins."""
    apart: float = 0.0
    """How far the loss curves are from one another, and how far they may be; see judged."""
    allowed: float = 0.0


def chosen(names: Sequence[str], device: str = "cpu") -> dict[str, Peer]:
    """The peers of these names, or all of this device. Raises AssayError."""
    here = {n: p for n, p in PEERS.items() if p.device == device}
    unknown = [name for name in names if name not in here]
    if unknown:
        raise AssayError(f"no peer {unknown[0]!r} here; there are {', '.join(here)}")
    picked = {name: here[name] for name in names} if names else here
    if len({peer.ours for peer in picked.values()}) < 2:
        raise AssayError(f"a race is one of ours and a peer at least, not {', '.join(picked)}")
    return picked


def race(
    data: Data,
    peers: Mapping[str, Peer],
    *,
    batch: int,
    steps: int = LEAST,
    rate: float = 0.05,
    seed: int = 0,
    sizes: Sizes = Sizes(),  # noqa: B008 - frozen
    seen: Callable[[int], None] = lambda _: None,
) -> list[Ran]:
    """Runs all peers side by side. `seen` is told the rounds done, warming up included.

    Raises AssayError for a batch that the digits do not fill.
    """
    if batch > len(data.train):
        raise AssayError(f"--batch {batch}: there are {len(data.train)} training digits")
    parameters, shuffle = initial(sizes, seed), random.Random(seed)
    trainers = {name: peer.make(parameters) for name, peer in peers.items()}
    placed = {name: _placed(data, net.device) for name, net in trainers.items()}
    true = agreement.truth(parameters, *placed[next(iter(placed))], _batch(data, batch, 0, seed))
    marks: dict[str, list[dict[str, float]]] = {name: [] for name in peers}
    losses: dict[str, list[torch.Tensor]] = {name: [] for name in peers}
    agreed: dict[str, tuple[Agreement, ...]] = {}
    for number in range(WARM + steps):
        for name in shuffle.sample(list(peers), len(peers)):
            net = trainers[name]
            at = _batch(data, batch, number, seed).to(net.device)
            spent, loss, found = _step(net, *placed[name], at, rate)
            marks[name].append(spent)
            losses[name].append(loss)
            if number == 0:
                made = agreement.gradients(found, true, peers[name].precision)
                agreed[name] = tuple(made)
        seen(number + 1)
    return [
        Ran(
            name,
            peers[name],
            {p: tuple(m[p] for m in marks[name][WARM:]) for p in (*PHASES, "total")},
            tuple(range(steps)),
            tuple(float(loss) for loss in losses[name]),
            accuracy(net, data.test),
            agreed[name],
            marks[name][0]["total"],
        )
        for name, net in trainers.items()
    ]


def _placed(data: Data, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    images, labels = data.train.images.copy(), data.train.labels.copy()
    return torch.from_numpy(images).to(device), torch.from_numpy(labels).to(device)


def _batch(data: Data, batch: int, step: int, seed: int) -> torch.Tensor:
    """The digits of a step; a last batch that is not full is left out, so all steps are alike."""
    epoch, within = divmod(step, len(data.train) // batch)
    whole = order(seed, epoch, len(data.train))
    return whole[within * batch : (within + 1) * batch].contiguous()


def _step(
    net: Any, images: torch.Tensor, labels: torch.Tensor, at: torch.Tensor, rate: float
) -> tuple[dict[str, float], torch.Tensor, Parameters]:
    """Seconds of each phase, the loss (not read before the end), and the gradients of the first."""
    marks = [_now(net.device)]
    x, y = net.load(images, labels, at)
    marks.append(_now(net.device))
    loss = net.forward(x, y)
    marks.append(_now(net.device))
    found = net.backward()
    marks.append(_now(net.device))
    net.update(rate)
    marks.append(_now(net.device))
    kept = {name: g for name, g in found.items()}
    net.zero()
    marks.append(_now(net.device))
    spent = {p: b - a for p, a, b in zip(PHASES, marks, marks[1:])}
    return {**spent, "total": marks[-1] - marks[0]}, loss.clone(), kept


def _now(device: str) -> float:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
    return time.perf_counter()


def judged(ran: Sequence[Ran]) -> list[Comparison]:
    """Ours against every other of its class of precision, by the rule above; none without ours."""
    ours = next((r for r in ran if r.peer.ours), None)
    if ours is None:
        return []
    others = [r for r in ran if not r.peer.ours and r.peer.precision == ours.peer.precision]
    among = max(
        (agreement.curves(a.losses, b.losses) for a, b in combinations(others, 2)), default=0.0
    )
    return [_compared(ours, other, among) for other in others]


def _compared(ours: Ran, other: Ran, among: float) -> Comparison:
    """among: how far the loss curves of two others are apart at most."""
    mine, theirs = ours.seconds["total"], other.seconds["total"]
    low, middle, high = ratio(mine, ours.rounds, theirs, other.rounds)
    reasons = [
        f"{r.name}: the gradient of {a.name} is off by {a.error:.1e}, allowed {a.allowed:.0e}"
        for r in (ours, other)
        for a in r.agreements
        if not a.holds
    ]
    apart, allowed = agreement.curves(ours.losses, other.losses), max(agreement.LOSS, among)
    if not apart <= allowed:
        reasons.append(
            f"loss curves are {apart:.1%} apart, allowed {allowed:.1%}; those of the others are "
            f"up to {among:.1%} from one another"
        )
    points = abs(ours.accuracy - other.accuracy)
    if not points <= POINTS:
        reasons.append(f"accuracies are {points:.2%} apart, allowed {POINTS:.1%}")
    steps = len(mine) * ours.each
    if steps < LEAST:
        reasons.append(f"{steps} steps, and a verdict needs {LEAST}")
    word = "no winner" if reasons else verdict(low, middle, high)
    return Comparison(other.name, low, middle, high, word, tuple(reasons), apart, allowed)
