"""Time to accuracy: a free recipe, trained over seeds by the fast step and by PyTorch's twin.

A training is one CUDA graph of all its steps. Its time goes from the shuffle of the first epoch to
the last update, on the device; upload, building and the weights it starts from are made before. The
test set is read once, after the last update, and decides nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from typing import Any

import torch

from ...clock.statistics import ratio, verdict
from ...errors import AssayError
from ..data import Data
from ..fast.network import Fast
from ..fast.step import Digits
from ..model import Parameters, Sizes, initial
from ..train import accuracy
from .bench import SPIN_CYCLES, Course, captured, timed
from .by_torch import TorchSteps
from .recipe import Recipe

MODE = "default"
SPIN = 10 * SPIN_CYCLES
"""Some 3 ms: a graph of 2,000 nodes takes the host longer than one of a burst."""


@dataclass(frozen=True)
class Trained:
    """Of one trainer, for each seed: seconds, and the share of test digits it reads rightly."""

    name: str
    seeds: tuple[int, ...]
    seconds: tuple[float, ...]
    accuracies: tuple[float, ...]
    ours: bool
    made_seconds: float = 0.0
    """What building, compiling and capturing took before."""

    @property
    def mean_seconds(self) -> float:
        return fmean(self.seconds)

    @property
    def accuracy(self) -> tuple[float, float]:
        """(mean, lower end of its 95 % interval by Student's t) over the seeds."""
        mean, half = mean_within(self.accuracies)
        return mean, mean - half


@dataclass(frozen=True)
class Comparison:
    """Ours against the twin: its seconds over ours by seed, if both reach the accuracy."""

    low: float
    ratio: float
    high: float
    word: str
    """faster, slower, same, cannot tell; or `no winner`."""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alike:
    """How far the accuracies of two trainers are apart, paired by seed."""

    low: float
    difference: float
    """Mean of ours less the other's; low and high are its 95 % interval by Student's t."""
    high: float
    word: str
    """same within noise, apart, or `cannot tell` from so few seeds."""


NOISE = 0.001
"""A tenth of a point: an interval that holds 0 and ends within it says `same within noise`."""


def alike(ours: Trained, other: Trained) -> Alike:
    """Whether both read as many test digits rightly, by the seeds that both trained with."""
    mean, half = mean_within([a - b for a, b in zip(ours.accuracies, other.accuracies)])
    low, high = mean - half, mean + half
    if low > 0 or high < 0:
        word = "apart"
    else:
        word = "same within noise" if low > -NOISE and high < NOISE else "cannot tell"
    return Alike(low, mean, high, word)


def mean_within(values: Sequence[float]) -> tuple[float, float]:
    """(mean, half of its 95 % interval by Student's t); infinite for fewer than two values."""
    mean, n = fmean(values), len(values)
    if n < 2:
        return mean, math.inf
    z = NormalDist().inv_cdf(0.975)
    t = z + (z**3 + z) / (4 * (n - 1))  # first term of Student's t in 1 / degrees of freedom
    return mean, t * stdev(values) / math.sqrt(n)


def compared(trained: Sequence[Trained], share: float) -> Comparison:
    """Who trains faster to a mean share of test digits, if the lower ends of both reach it."""
    ours, twin = (next(t for t in trained if t.ours == mine) for mine in (True, False))
    low, middle, high = ratio(ours.seconds, ours.seeds, twin.seconds, twin.seeds)
    reasons = tuple(
        f"{t.name} reads {t.accuracy[0]:.3%}, at least {t.accuracy[1]:.3%} (95 %), "
        f"which does not reach {share:.2%}"
        for t in (ours, twin)
        if not t.accuracy[1] >= share
    )
    return Comparison(
        low, middle, high, "no winner" if reasons else verdict(low, middle, high), reasons
    )


class FastTraining:
    """All steps of a recipe by the fast step, in one graph."""

    def __init__(self, parameters: Mapping[str, torch.Tensor], course: Course, recipe: Recipe):
        device = course.images.device
        self.net = Fast(parameters, device=str(device))
        self._recipe, self.device = recipe, str(device)
        self._digits = Digits(course.images, course.labels, course.order, recipe.batch)
        self._step = self.net.of_batch(recipe.batch)
        self._now = torch.zeros(1, dtype=torch.int32, device=device)
        self._speed = torch.zeros_like(self.net.flat)
        self._rates = torch.tensor(recipe.rates(), device=device)
        self.losses = torch.zeros(recipe.steps, device=device)
        self._graph = captured(self._all, warm=1)

    def _all(self) -> None:
        self._now.zero_()
        for step in range(self._recipe.steps):
            self._step.forward(
                self._digits, self._now, smooth=self._recipe.smooth, follows=step > 0
            )
            self._step.backward(self._digits, self._now, 1)
            self._step.finish(
                self._now, 1, self.losses, self._rates,
                keep=False, momentum=self._recipe.momentum, speed=self._speed,
            )  # fmt: skip

    def start(self, parameters: Parameters) -> None:
        """Back to these parameters, and to no momentum."""
        for name, value in self.net.parameters.items():
            value.copy_(parameters[name])
        self._speed.zero_()

    def run(self) -> None:
        self._graph.replay()

    def load(self, images: Any, labels: Any, order: Any) -> tuple[Any, torch.Tensor]:
        return self.net.load(images, labels, order)

    def logits(self, x: Any) -> torch.Tensor:
        return self.net.logits(x)


class TwinTraining:
    """The same in PyTorch: compiled, channels_last, all steps in one graph with their rates."""

    def __init__(self, parameters: Mapping[str, torch.Tensor], course: Course, recipe: Recipe):
        self._recipe, self._course = recipe, course
        self.steps = TorchSteps(
            parameters, course, mode=MODE, channels_last=True, smooth=recipe.smooth,
            optimizer=recipe.optimizer,
        )  # fmt: skip
        self.device = self.steps.device
        self.losses = torch.zeros(recipe.steps, device=course.images.device)
        self._graph = captured(self._all, warm=1)

    def _all(self) -> None:
        batch = self._recipe.batch
        for step, rate in enumerate(self._recipe.rates()):
            self.steps.optimizer.param_groups[0]["lr"] = rate
            at = self._course.order[step * batch : (step + 1) * batch]
            self.losses[step].copy_(self.steps.step(at))

    def start(self, parameters: Parameters) -> None:
        """Back to these parameters, and to no momentum."""
        self.steps.reset(parameters)

    def run(self) -> None:
        self._graph.replay()

    def load(self, images: Any, labels: Any, order: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return self.steps.load(images, labels, order)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        return self.steps.logits(x)


TRAINERS: dict[str, Callable[[Parameters, Course, Recipe], Any]] = {
    "fast": FastTraining,
    "twin": TwinTraining,
}


def trainings(
    data: Data,
    recipe: Recipe,
    seeds: Sequence[int],
    *,
    device: str = "cuda:0",
    names: Sequence[str] = ("fast", "twin"),
    seen: Callable[[str], None] = lambda _: None,
) -> list[Trained]:
    """Trains once for each seed and trainer, in turns. Raises AssayError for too few digits."""
    count, need = len(data.train), recipe.steps * recipe.batch
    if count < recipe.batch:
        raise AssayError(f"a batch of {recipe.batch}: there are {count:,} training digits")
    images = torch.from_numpy(data.train.images.copy()).to(device)
    labels = torch.from_numpy(data.train.labels.copy()).to(device)
    order = torch.zeros(need, dtype=torch.int64, device=device)
    course = Course(images, labels, recipe.batch, recipe.peak, order)
    made, spent = {}, {}
    for name in names:
        seen(f"making {name}")
        begun = time.perf_counter()
        order.zero_()
        made[name] = TRAINERS[name](initial(Sizes(), 0), course, recipe)
        spent[name] = time.perf_counter() - begun
    seconds: dict[str, list[float]] = {name: [] for name in names}
    right: dict[str, list[float]] = {name: [] for name in names}
    generator = torch.Generator(device=device)
    whole = count // recipe.batch * recipe.batch

    def shuffled() -> None:
        """Epochs of whole batches, each in an order of its own, one after the other."""
        for first in range(0, need, whole):
            part = order[first : first + whole]
            part.copy_(torch.randperm(count, generator=generator, device=device)[: len(part)])

    for seed in seeds:
        parameters = {n: v.to(device) for n, v in initial(Sizes(), seed).items()}
        for name, one in made.items():
            seen(f"seed {seed} {name}")
            one.start(parameters)
            generator.manual_seed(seed)

            def run(one: Any = one) -> None:
                shuffled()
                one.run()

            seconds[name].append(timed(run, SPIN))
            right[name].append(accuracy(one, data.test))
    return [
        Trained(
            *(name, tuple(seeds), tuple(seconds[name]), tuple(right[name]), name == "fast"),
            spent[name],
        )
        for name in names
    ]
