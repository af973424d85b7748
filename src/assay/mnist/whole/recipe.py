"""How a training goes: its batch, steps, rates and optimiser; and the digits it is tuned on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from ...errors import AssayError
from ..data import Data, Digits

HELD_BACK = 5000
"""Training digits that a recipe is judged on while it is chosen."""


@dataclass(frozen=True)
class Recipe:
    """SGD, with Nesterov's momentum if there is any; `rise and fall`: the rate rises to `peak` in
    the share `warm` of all steps, then falls to 0. The defaults are what mnist_recipe.py chose."""

    batch: int = 192
    steps: int = 723
    peak: float = 0.1
    momentum: float = 0.9
    smooth: float = 0.0
    warm: float = 0.2
    schedule: Literal["rise and fall", "constant"] = "rise and fall"

    @property
    def said(self) -> str:
        """The recipe in words."""
        rate = f"rate {self.peak:g}"
        if self.schedule == "rise and fall":
            rate = f"rate to {self.peak:g} in the first {self.warm:.0%} and down to 0"
        way = f"Nesterov {self.momentum:g}" if self.momentum else "no momentum"
        return f"{self.steps} steps of {self.batch}, {rate}, {way}, smoothing {self.smooth:g}"

    def rates(self) -> list[float]:
        """The rate of every step."""
        if self.schedule == "constant":
            return [self.peak] * self.steps
        made = []
        for step in range(self.steps):
            at = (step + 1) / (self.steps + 1)
            made.append(
                self.peak * (at / self.warm if at < self.warm else (1 - at) / (1 - self.warm))
            )
        return made

    @property
    def optimizer(self) -> dict[str, Any]:
        """What torch.optim.SGD is made with."""
        if not self.momentum:
            return {"lr": self.peak}
        return {"lr": self.peak, "momentum": self.momentum, "nesterov": True}


NOTES = Recipe(batch=1024, steps=580, peak=0.05, momentum=0.0, schedule="constant")
"""As in the course notes: a large batch, no momentum, no schedule. Ten epochs of whole batches."""


def split(data: Data) -> Data:
    """The training digits alone: the last HELD_BACK of them are what is held out.

    Choosing a recipe by these leaves the test digits unread. Raises AssayError for too few.
    """
    kept, train = len(data.train) - HELD_BACK, data.train
    if kept < HELD_BACK:
        raise AssayError(
            f"a recipe is judged on {HELD_BACK:,} training digits, and chosen on as many others; "
            f"there are {len(train):,}: take the full set, with --data DIR"
        )
    return replace(
        data,
        train=Digits(train.images[:kept], train.labels[:kept]),
        test=Digits(train.images[kept:], train.labels[kept:]),
        source=f"{data.source}: {kept:,} training digits, judged on the other {HELD_BACK:,}",
    )
