"""Training: epochs of steps in an order that the seed decides, kept so that it goes on bit for bit.

Everything that a step depends on is in the checkpoint or follows from the seed and the number of
the step: no generator's state has to be kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from ..errors import AssayError
from .data import Data, Digits
from .fast.network import Fast
from .model import Parameters, Sizes, initial
from .network import Network
from .twin import Twin, from_torch

EVALUATED = 1000
"""Digits whose statistics batchnorm sees at once in evaluation."""


@dataclass(frozen=True)
class Plan:
    """What a training is, but for the digits."""

    backend: str = "cpp"
    epochs: int = 5
    batch: int = 64
    rate: float = 0.05
    seed: int = 0
    sizes: Sizes = field(default_factory=Sizes)

    def __post_init__(self) -> None:
        if self.batch < 2 or self.epochs < 1 or not self.rate > 0:
            raise AssayError(
                f"--batch {self.batch} --epochs {self.epochs} --rate {self.rate}: a batch has at "
                "least 2 digits, for a variance; there is at least 1 epoch, and a rate above 0"
            )


@dataclass(frozen=True)
class State:
    """How far a training is: the parameters after `steps` steps, and what was seen on the way."""

    plan: Plan
    data: str
    """Digest of the digits."""
    steps: int
    parameters: Parameters
    losses: tuple[float, ...] = ()
    accuracies: tuple[float, ...] = ()
    """On the held-out digits, after each whole epoch."""


WHOLE: dict[str, Callable[[Parameters], Any]] = {"fast": Fast, "autograd": Twin}
"""Back ends for the whole network alone."""


def network(plan: Plan, parameters: Parameters) -> Any:
    """What trains: our own kernels, layer by layer or fused, or the twin by autograd."""
    whole = WHOLE.get(plan.backend)
    return whole(parameters) if whole else Network(parameters, plan.backend)


def start(plan: Plan, data: Data) -> State:
    return State(plan, digest_of(data), 0, initial(plan.sizes, plan.seed))


def digest_of(data: Data) -> str:
    """12 hex digits of all digits, to notice that a training goes on with others."""
    found = hashlib.sha256()
    for part in (data.train, data.test):
        found.update(part.images.tobytes() + part.labels.tobytes())
    return found.hexdigest()[:12]


def order(seed: int, epoch: int, count: int) -> torch.Tensor:
    """The order of the digits in an epoch, (count,) int64."""
    digest = hashlib.blake2b(f"{seed}/{epoch}".encode(), digest_size=8).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)
    return torch.randperm(count, generator=generator)


def steps_per_epoch(plan: Plan, data: Data) -> int:
    """How many whole batches the digits make, at least one: fewer digits are one batch.

    What is left over waits for the order of another epoch: the statistics of 8 digits where the
    others had those of 32 undo much of what was learnt (5,000 digits in batches of 32: after an
    epoch that ended so, 63 % of the held-out digits were right in one training of four).
    """
    if len(data.train) < 2:
        raise AssayError(f"{len(data.train)} training digit: a batch has at least 2")
    return max(1, len(data.train) // plan.batch)


def train(
    state: State,
    data: Data,
    *,
    seen: Callable[[State], None] = lambda _: None,
    every: int = 0,
    until: int | None = None,
) -> State:
    """Goes on to the end of the plan, or to `until` steps.

    seen: is given the state after every `every` steps, after every epoch, and where it ends.
    Raises AssayError if the digits are not those that the training began with, or if the loss is
    no number any more.
    """
    plan = state.plan
    if digest_of(data) != state.data:
        raise AssayError(
            f"these digits ({digest_of(data)}, {data.source}) are not those that the training "
            f"began with ({state.data}); give the same --data"
        )
    net = network(plan, state.parameters)
    images, labels = _placed(data.train, net.device)
    per_epoch = steps_per_epoch(plan, data)
    last = min(until if until is not None else per_epoch * plan.epochs, per_epoch * plan.epochs)
    losses, accuracies = list(state.losses), list(state.accuracies)

    def now(steps: int) -> State:
        return replace(
            state,
            steps=steps,
            parameters=from_torch(net.parameters),
            losses=tuple(losses),
            accuracies=tuple(accuracies),
        )

    shuffled, shuffled_for = torch.empty(0), -1
    for step in range(state.steps, last):
        epoch, within = divmod(step, per_epoch)
        if epoch != shuffled_for:
            shuffled = order(plan.seed, epoch, len(data.train)).to(net.device)
            shuffled_for = epoch
        chosen = shuffled[within * plan.batch : (within + 1) * plan.batch].contiguous()
        net.zero()
        loss = net.forward(*net.load(images, labels, chosen))
        net.backward()
        net.update(plan.rate)
        losses.append(float(loss))
        if not np.isfinite(losses[-1]):
            raise AssayError(
                f"step {step}: the loss is {losses[-1]}: the training diverged; lower --rate "
                f"{plan.rate}"
            )
        ends = within == per_epoch - 1
        if ends:
            accuracies.append(accuracy(net, data.test))
        if ends or step + 1 == last or (every and (step + 1) % every == 0):
            seen(now(step + 1))
    return now(max(last, state.steps))


def _placed(digits: Digits, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    return (
        torch.from_numpy(digits.images.copy()).to(device),
        torch.from_numpy(digits.labels.copy()).to(device),
    )


def scores(net: Any, digits: Digits) -> torch.Tensor:
    """Logits (n, classes) of all digits, in parts of about EVALUATED that are alike in size."""
    images, labels = _placed(digits, net.device)
    parts = torch.arange(len(digits)).tensor_split(max(1, round(len(digits) / EVALUATED)))
    return torch.cat(
        [net.logits(net.load(images, labels, p.to(net.device))[0]).cpu().clone() for p in parts]
    )


def accuracy(net: Any, digits: Digits) -> float:
    """The share of digits whose largest logit is that of their label."""
    right = scores(net, digits).argmax(1) == torch.from_numpy(digits.labels.astype(np.int64))
    return float(right.double().mean())
