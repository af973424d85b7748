"""`assay mnist`: train on digits, read some, show one, export the network, race it."""

from __future__ import annotations

import dataclasses
import itertools
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ..errors import AssayError
from ..mnist import checkpoint, data, digit, png
from ..mnist import train as training
from ..mnist.model import digest
from ..mnist.predict import images_in
from ..mnist.predict import predict as read_digits

console = Console(highlight=False, soft_wrap=True)
SHADES = "▁▂▃▄▅▆▇█"
CURVE = 60
"""Characters of a loss curve."""


def show(index: int, folder: Path | None, download: bool, to: Path | None, part: str) -> None:
    """Prints a digit, and writes it as PNG if asked to."""
    found = data.load(folder, download=download)
    digits = {"train": found.train, "test": found.test}.get(part)
    if digits is None:
        raise AssayError(f"--part {part}: say train or test")
    if not 0 <= index < len(digits):
        raise AssayError(f"show {index}: {part} has digits 0 to {len(digits) - 1}; {found.source}")
    print(digit.text(digits.images[index]))
    print(f"{part} digit {index}, a {digits.labels[index]}; {found.source}")
    if to is not None:
        png.write(to, digits.images[index])
        print(f"written to {to}")


def curve(losses: tuple[float, ...]) -> str:
    """A loss curve as one line of blocks: means of equal parts, from 0 to the largest."""
    if not losses:
        return ""
    count = min(CURVE, len(losses))
    ends = [len(losses) * i // count for i in range(count + 1)]
    means = [sum(losses[a:b]) / (b - a) for a, b in itertools.pairwise(ends)]
    top = max(means) or 1.0
    return "".join(SHADES[min(len(SHADES) - 1, int(len(SHADES) * m / top))] for m in means)


def train(given: dict[str, Any]) -> None:
    """Trains, or goes on with a checkpoint; keeps one after every epoch and every `every` steps."""
    found = data.load(given["data"], download=given["download"])
    kept: Path = given["checkpoint"]
    state = _resumed(given, kept) if given["resume"] else training.start(_plan(given, found), found)
    plan = state.plan
    console.print(f"{found.source}")
    if found.sample:
        console.print(
            "figures below are of this sample, not of MNIST; --data DIR takes the full set"
        )
    console.print(
        f"{plan.backend}, batch {plan.batch}, rate {plan.rate:g}, seed {plan.seed}, "
        f"{sum(p.numel() for p in state.parameters.values()):,} parameters "
        f"{digest(state.parameters)}" + (f", from step {state.steps}" if state.steps else "")
    )
    end = _trained(state, found, given["every"], kept)
    console.print(f"loss  {curve(end.losses)}  {end.losses[0]:.3f} to {end.losses[-1]:.4f}")
    console.print(
        f"parameters {digest(end.parameters)} after {end.steps:,} steps, kept in {kept}\n"
        f"next:  assay mnist predict IMAGE.png --checkpoint {kept}"
    )


def _plan(given: dict[str, Any], found: data.Data) -> training.Plan:
    # The notes want large batches; a sample of 5,000 has too few of them for one training.
    batch = given["batch"] or (SMALL_BATCH if found.sample else LARGE_BATCH)
    return training.Plan(
        backend=given["backend"] or "cpp",
        epochs=given["epochs"] or EPOCHS,
        batch=batch,
        rate=given["rate"] or 0.05,
        seed=given["seed"] or 0,
    )


SMALL_BATCH, LARGE_BATCH, EPOCHS = 32, 1024, 5


def _resumed(given: dict[str, Any], kept: Path) -> training.State:
    state = checkpoint.load(kept)
    for name in ("backend", "batch", "rate", "seed"):
        if given[name] is not None and given[name] != getattr(state.plan, name):
            raise AssayError(
                f"--{name} {given[name]}: {kept} was trained with {getattr(state.plan, name)}; "
                "going on with another would be another training: leave it out"
            )
    epochs = given["epochs"] or state.plan.epochs
    return dataclasses.replace(state, plan=dataclasses.replace(state.plan, epochs=epochs))


def _trained(state: training.State, found: data.Data, every: int, kept: Path) -> training.State:
    plan, begun = state.plan, time.monotonic()
    total = training.steps_per_epoch(plan, found) * plan.epochs
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[loss]}"),
        TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("training", total=total, completed=state.steps, loss="")

        def seen(now: training.State) -> None:
            progress.update(task, completed=now.steps, loss=f"loss {now.losses[-1]:.4f}")
            checkpoint.save(now, kept)
            epoch, within = divmod(now.steps, total // plan.epochs)
            if not within:
                console.print(
                    f"epoch {epoch}/{plan.epochs}  loss {now.losses[-1]:.4f}  "
                    f"held out {now.accuracies[-1]:.2%} right  {time.monotonic() - begun:.1f} s"
                )

        return training.train(state, found, seen=seen, every=every)


def predict(path: Path, kept: Path) -> None:
    """Prints what the network reads in each image, with the probabilities of the best three."""
    images, state = images_in(path), checkpoint.load(kept)
    for index, guess in enumerate(read_digits(state, images)):
        order = sorted(range(len(guess.probabilities)), key=lambda d: -guess.probabilities[d])
        best = ", ".join(f"{d} {guess.probabilities[d]:.1%}" for d in order[:3])
        print(f"{path.name}[{index}]: {guess.digit}   {best}")
