"""Time to accuracy: a free recipe, trained over seeds by the fast step and by PyTorch's twin.

A training is one CUDA graph of all its steps. Its time goes from the shuffle of the first epoch to
the last update, on the device; upload, building and the weights it starts from are made before. The
test set is read once, after the last update, and decides nothing. The recipe was tuned on the first
55,000 training digits, judged on the other 5,000 (docs/mnist.md).
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

MODE = "default"
SPIN = 10 * SPIN_CYCLES
"""Some 3 ms: a graph of 2,000 nodes takes the host longer than one of a burst."""


@dataclass(frozen=True)
class Recipe:
    """Nesterov's momentum; the rate rises to `peak` in the share `warm` of all steps, then to 0."""

    batch: int = 256
    steps: int = 300
    peak: float = 0.1
    momentum: float = 0.9
    smooth: float = 0.0
    warm: float = 0.2

    @property
    def said(self) -> str:
        """The recipe in words."""
        return (
            f"{self.steps} steps of {self.batch}, rate to {self.peak:g} in the first "
            f"{self.warm:.0%} and down to 0, Nesterov {self.momentum:g}, smoothing {self.smooth:g}"
        )

    def rates(self) -> list[float]:
        """The rate of every step."""
        made = []
        for step in range(self.steps):
            at = (step + 1) / (self.steps + 1)
            made.append(
                self.peak * (at / self.warm if at < self.warm else (1 - at) / (1 - self.warm))
            )
        return made


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
        mean, n = fmean(self.accuracies), len(self.accuracies)
        if n < 2:
            return mean, float("-inf")
        z = NormalDist().inv_cdf(0.975)
        t = z + (z**3 + z) / (4 * (n - 1))  # first term of Student's t in 1 / degrees of freedom
        return mean, mean - t * stdev(self.accuracies) / math.sqrt(n)


@dataclass(frozen=True)
class Comparison:
    """Ours against the twin: its seconds over ours by seed, if both reach the accuracy."""

    low: float
    ratio: float
    high: float
    word: str
    """faster, slower, same, cannot tell; or `no winner`."""
    reasons: tuple[str, ...] = ()


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
        for _ in range(self._recipe.steps):
            self._step.forward(self._digits, self._now, smooth=self._recipe.smooth)
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
            optimizer={"lr": recipe.peak, "momentum": recipe.momentum, "nesterov": True},
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
