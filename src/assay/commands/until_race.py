"""`assay mnist race --until PERCENT` and `--seeds N`: trainings over seeds, ours and PyTorch's."""

from __future__ import annotations

from pathlib import Path

import torch
from rich.table import Table

from ..errors import AssayError
from ..mnist import data
from ..mnist.whole.recipe import NOTES, Recipe
from ..mnist.whole.until import Alike, Comparison, Trained, alike, compared, trainings
from ..report.units import seconds
from .racing import WIDTH, Console, console

NO_GPU = "no GPU here: trainings over seeds are timed on an NVIDIA GPU"
LAST = "device time from the first shuffle to the last update; the test digits were read after it"


def race(folder: Path | None, download: bool, percent: float, seeds: int) -> int:
    """Seconds to an accuracy, by the recipe that was tuned for it. 3 without a GPU, else 0.

    Raises AssayError for a share or a number of seeds that decides nothing.
    """
    if not 10 < percent < 100:
        raise AssayError(
            f"--until {percent:g}: a share of test digits in percent, as in --until 99"
        )
    trained = _trained(folder, download, Recipe(), seeds, percent / 100)
    if trained is None:
        return 3
    console.print(sentence(compared(trained, percent / 100)))
    console.print(LAST)
    return 0


def accuracy(folder: Path | None, download: bool, seeds: int) -> int:
    """Accuracy by the recipe of the notes, ours beside PyTorch's. 3 without a GPU, else 0."""
    trained = _trained(folder, download, NOTES, seeds, None)
    if trained is None:
        return 3
    console.print(difference(alike(*trained)))
    console.print(LAST)
    return 0


def _trained(
    folder: Path | None, download: bool, recipe: Recipe, seeds: int, share: float | None
) -> list[Trained] | None:
    """Trains once a seed, ours and the twin in turns, and prints the table; None without a GPU."""
    if seeds < 2:
        raise AssayError(f"--seeds {seeds}: a mean with an interval needs 2 at least")
    if not torch.cuda.is_available():
        console.print(NO_GPU)
        return None
    found = data.load(folder, download=download)
    with console.status("training") as status:
        trained = trainings(found, recipe, range(seeds), seen=lambda what: status.update(what))
    console.print(f"{found.source}; {recipe.said}; {seeds} seeds")
    Console(highlight=False, width=max(WIDTH, console.width)).print(table(trained, share))
    return trained


def table(trained: list[Trained], share: float | None) -> Table:
    """Seconds of a training and what it read rightly, of each trainer; and if that is `share`."""
    made = Table(box=None, pad_edge=False)
    reaches = ["reaches"] if share is not None else []
    columns = ("", "mean", "shortest", "longest", "right", "at least (95 %)", *reaches, "made in")
    for name in columns:
        made.add_column(name, justify="left" if not name else "right", no_wrap=True)
    for t in trained:
        mean, low = t.accuracy
        made.add_row(
            t.name + (" (ours)" if t.ours else ""),
            *(seconds(s) for s in (t.mean_seconds, min(t.seconds), max(t.seconds))),
            f"{mean:.3%}",
            f"{low:.3%}",
            *([] if share is None else [f"{share:.2%}" if low >= share else "no"]),
            seconds(t.made_seconds),
        )
    return made


def sentence(c: Comparison) -> str:
    """One comparison in words."""
    if c.word == "no winner":
        return f"no winner: {'; '.join(c.reasons)}"
    return (
        f"ours is {c.word}: the twin's time over ours is {c.ratio:.2f} "
        f"({c.low:.2f} to {c.high:.2f}, 95 %)"
    )


def difference(a: Alike) -> str:
    """How far two accuracies are apart, in words."""
    return (
        f"{a.word}: ours reads {100 * a.difference:+.3f} points more test digits than the twin "
        f"({100 * a.low:+.3f} to {100 * a.high:+.3f}, 95 %, paired by seed)"
    )
