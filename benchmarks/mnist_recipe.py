"""Chooses the recipe of the race to an accuracy on a GPU, without a look at the test digits.

    python -m benchmarks.mnist_recipe --data DIR [--limit 100] [--most 0.045] [--seeds 8]
        [--to FILE]

The fast step trains on the first 55,000 training digits; the other 5,000 judge. First batches and
peaks of the rate, each with as many steps as fit into --most seconds; then, one after the other
about the best so far, momentum, smoothing, the share of rising, and the peak again; last, the five
best with 4 times the seeds, since the best of many looks better than it is. A recipe that takes
longer than --most is no candidate. Every line is printed and written as it is known; the last one
is the choice, whose `recipe` is what --recipe of benchmarks.mnist_race takes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from assay.mnist import data
from assay.mnist.data import Data
from assay.mnist.whole.recipe import Recipe, split
from assay.mnist.whole.until import mean_within, trainings

BATCHES = (128, 192, 256, 384, 512)
PEAKS = (0.05, 0.1, 0.15, 0.2, 0.3)
ABOUT: dict[str, tuple[float, ...]] = {
    "momentum": (0.8, 0.85, 0.95),
    "smooth": (0.03, 0.06, 0.1, 0.2),
    "warm": (0.05, 0.1, 0.3, 0.4),
    "peak": (0.7, 0.85, 1.2, 1.4),
}
"""What is tried about the best recipe; peaks as shares of its own."""
BEST = 5


@dataclass(frozen=True)
class Tried:
    """A recipe, the seconds that it takes, and the shares of digits held back that it reads."""

    recipe: Recipe
    seconds: float
    shares: tuple[float, ...]

    @property
    def mean(self) -> float:
        return mean_within(self.shares)[0]


class Search:
    """Tries recipes while there is time, none of them twice with as many seeds."""

    def __init__(self, digits: Data, most: float, end: float, to: Any):
        self.digits, self.most, self.end, self._to = digits, most, end, to
        self.tried: list[Tried] = []
        self.steps = {batch: self.fitting(batch) for batch in BATCHES}

    def fitting(self, batch: int) -> int:
        """Steps that take 97 % of the time there is, by a training of 100."""
        (made,) = trainings(self.digits, Recipe(batch, 100), range(3), names=["fast"])
        return int(0.97 * self.most / (min(made.seconds) / 100))

    def attempt(self, recipe: Recipe, seeds: int) -> None:
        """Trains by it, unless the time is over."""
        known = any(t.recipe == recipe and len(t.shares) >= seeds for t in self.tried)
        if known or time.monotonic() > self.end:
            return
        # Seeds of their own: the race begins at 0.
        (made,) = trainings(self.digits, recipe, range(1000, 1000 + seeds), names=["fast"])
        tried = Tried(recipe, made.mean_seconds, made.accuracies)
        self.tried.append(tried)
        self.tell("tried", tried)

    def tell(self, kind: str, tried: Tried) -> None:
        mean, half = mean_within(tried.shares)
        print(f"{kind}: {mean:.3%} +- {half:.3%} in {1e3 * tried.seconds:.1f} ms, "
              f"{len(tried.shares)} seeds: {tried.recipe.said}, rises {tried.recipe.warm:.0%}",
              flush=True)  # fmt: skip
        line = {"kind": kind, "recipe": asdict(tried.recipe), "seconds": tried.seconds,
                "shares": tried.shares, "mean": mean}  # fmt: skip
        self._to.write(json.dumps(line) + "\n")
        self._to.flush()

    def best(self, seeds: int = 0) -> list[Tried]:
        """Candidates with at least so many seeds, the best first."""
        fit = [t for t in self.tried if t.seconds <= self.most and len(t.shares) >= seeds]
        return sorted(fit, key=lambda t: -t.mean)


def about(best: Recipe, name: str) -> Iterator[Recipe]:
    """The best recipe with another value of one field."""
    for value in ABOUT[name]:
        yield replace(best, **{name: best.peak * value if name == "peak" else value})  # type: ignore[arg-type]


def attempts(search: Search, seeds: int) -> Iterator[tuple[Iterable[Recipe], int]]:
    """What is tried one after the other, each looking at what was found before."""
    yield [Recipe(b, s, p) for p in PEAKS for b, s in search.steps.items()], seeds
    for name in ABOUT:
        yield list(about(search.best()[0].recipe, name)), seeds
    yield [t.recipe for t in search.best()[:BEST]], 4 * seeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the four IDX files")
    parser.add_argument("--limit", type=float, default=100, help="seconds for all of it")
    parser.add_argument("--most", type=float, default=0.045, help="seconds of a training")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--to", type=Path, default=Path("mnist_recipe.jsonl"))
    given = parser.parse_args()
    end = time.monotonic() + given.limit
    with given.to.open("a") as file:
        search = Search(split(data.load(given.data)), given.most, end - given.limit / 5, file)
        for recipes, seeds in attempts(search, given.seeds):
            if seeds > given.seeds:
                search.end = end  # the last fifth is theirs
            for recipe in recipes:
                search.attempt(recipe, seeds)
        sure = search.best(4 * given.seeds) or search.best()
        search.tell("chosen", sure[0])


if __name__ == "__main__":
    main()
