"""`assay mnist race --until PERCENT`: seconds of training to an accuracy, over seeds."""

from __future__ import annotations

from pathlib import Path

import torch
from rich.table import Table

from ..errors import AssayError
from ..mnist import data
from ..mnist.whole.until import Comparison, Recipe, Trained, compared, trainings
from ..report.units import seconds
from .racing import WIDTH, Console, console

NO_GPU = "--until: no GPU here; a training to an accuracy is timed on an NVIDIA GPU"


def race(folder: Path | None, download: bool, percent: float, seeds: int) -> int:
    """Trains once a seed, ours and the twin in turns, and prints both. 3 without a GPU, else 0.

    Raises AssayError for a share or a number of seeds that decides nothing.
    """
    if not 10 < percent < 100:
        raise AssayError(
            f"--until {percent:g}: a share of test digits in percent, as in --until 99"
        )
    if seeds < 2:
        raise AssayError(f"--seeds {seeds}: a mean with an interval needs 2 at least")
    if not torch.cuda.is_available():
        console.print(NO_GPU)
        return 3
    found, recipe = data.load(folder, download=download), Recipe()
    with console.status("training") as status:
        trained = trainings(found, recipe, range(seeds), seen=lambda what: status.update(what))
    console.print(f"{found.source}; {recipe.said}; {seeds} seeds")
    Console(highlight=False, width=max(WIDTH, console.width)).print(table(trained, percent / 100))
    console.print(sentence(compared(trained, percent / 100)))
    console.print(
        "device time from the first shuffle to the last update; the test digits were read after it"
    )
    return 0


def table(trained: list[Trained], share: float) -> Table:
    """Seconds of a training and what it read rightly, of each trainer."""
    made = Table(box=None, pad_edge=False)
    columns = ("", "mean", "shortest", "longest", "right", "at least (95 %)", "reaches", "made in")
    for name in columns:
        made.add_column(name, justify="left" if not name else "right", no_wrap=True)
    for t in trained:
        mean, low = t.accuracy
        made.add_row(
            t.name + (" (ours)" if t.ours else ""),
            *(seconds(s) for s in (t.mean_seconds, min(t.seconds), max(t.seconds))),
            f"{mean:.3%}",
            f"{low:.3%}",
            f"{share:.2%}" if low >= share else "no",
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
