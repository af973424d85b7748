"""The options of `assay mnist`; what they do is imported where a command runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="A small network on MNIST, every layer a kernel of its own.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Data = Annotated[
    Path | None, typer.Option("--data", help="Folder with the four IDX files, gzipped or not.")
]
Download = Annotated[
    bool, typer.Option("--download", help="The full set, by pooch, with checksums.")
]
Checkpoint = Annotated[Path, typer.Option("--checkpoint", help="Where a training is kept.")]
KEPT = Path("mnist.npz")


@app.command()
def train(
    data: Data = None,
    download: Download = False,
    backend: Annotated[
        str | None,
        typer.Option("--backend", help="cpp, torch, cuda, fast, autograd; cpp,conv2=torch."),
    ] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="Default 5.")] = None,
    batch: Annotated[
        int | None, typer.Option("--batch", min=2, help="Default 1024; 32 on the sample.")
    ] = None,
    rate: Annotated[float | None, typer.Option("--rate", help="Default 0.05.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Weights and order.")] = None,
    checkpoint: Checkpoint = KEPT,
    every: Annotated[
        int, typer.Option("--every", min=1, help="Steps between two checkpoints.")
    ] = 100,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the checkpoint.")] = False,
) -> None:
    """Train: loss curve, accuracy, a checkpoint from which it goes on bit for bit."""
    given = locals()
    yielding_threads()
    from . import digits

    digits.train(given)


def yielding_threads() -> None:
    """Threads of OpenMP that wait give their processor away; it reads this when it is loaded.

    They would spin: on 2 cores that others use too, a step took ten times as long.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@app.command()
def predict(
    image: Annotated[Path, typer.Argument(help="A PNG of 28x28, or IDX images.")],
    checkpoint: Checkpoint = KEPT,
) -> None:
    """Read digits: what each image is, and how sure the network is."""
    yielding_threads()
    from . import digits

    digits.predict(image, checkpoint)


@app.command()
def show(
    digit: Annotated[int, typer.Argument(metavar="DIGIT", help="Its number, from 0.")],
    data: Data = None,
    download: Download = False,
    part: Annotated[str, typer.Option("--part", help="train or test.")] = "train",
    png: Annotated[Path | None, typer.Option("--png", help="Write it there too.")] = None,
) -> None:
    """Print one digit in the terminal, and write it as PNG."""
    from . import digits

    digits.show(digit, data, download, png, part)


@app.command()
def race(
    data: Data = None,
    download: Download = False,
    batch: Annotated[
        list[int] | None,
        typer.Option("--batch", min=2, help="Digits of a step; several race in turn. Default 256."),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", min=10, help="Steps of each.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Weights and order.")] = 0,
    peers: Annotated[
        list[str] | None, typer.Option("--peer", help="Only these, ours among them.")
    ] = None,
    pinned: Annotated[
        bool, typer.Option("--pinned", help="Digits in pinned host memory beside those on the GPU.")
    ] = False,
    until: Annotated[
        float | None,
        typer.Option(
            "--until", metavar="PERCENT", help="Seconds of training to it, on a GPU; 99 is usual."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", help="Trainings of --until (50); alone: accuracy over them."),
    ] = None,
) -> None:
    """Race PyTorch: same digits, weights and batches, in turns; no winner unless all agrees.

    On a GPU whole steps race in bursts, in every form PyTorch has; without one, phases on the CPU.
    --until trains by one recipe with seeds 0, 1, ..., --seeds alone by that of the notes; of the
    other options only those of the digits matter then. These and --pinned end with exit code 3
    without a GPU.
    """
    yielding_threads()
    if until is not None or seeds is not None:
        from . import until_race

        if until is not None:
            raise typer.Exit(until_race.race(data, download, until, seeds or 50))
        raise typer.Exit(until_race.accuracy(data, download, seeds or 0))
    from . import racing

    run = racing.pinned if pinned else racing.race
    codes = [run(data, download, b, steps, seed, peers or []) for b in batch or [256]]
    raise typer.Exit(max(codes))


@app.command()
def profile(
    data: Data = None,
    download: Download = False,
    backend: Annotated[
        str, typer.Option("--backend", help="cpp, torch, cuda, fast; cpp,conv2=torch.")
    ] = "cpp",
    batch: Annotated[int, typer.Option("--batch", min=2, help="Digits of a step.")] = 256,
    steps: Annotated[int, typer.Option("--steps", min=10, help="Steps that count.")] = 30,
    seed: Annotated[int, typer.Option("--seed", help="Weights and order.")] = 0,
) -> None:
    """Where a step's time goes: a table of every layer, forward and backward."""
    yielding_threads()
    from . import racing

    racing.profile(data, download, backend, batch, steps, seed)


@app.command()
def export(
    to: Annotated[Path, typer.Argument(metavar="FILE.onnx", help="A new file.")],
    checkpoint: Checkpoint = KEPT,
) -> None:
    """Write the network as ONNX, and compare it with ours in ONNX Runtime."""
    yielding_threads()
    from . import racing

    racing.export(checkpoint, to)
