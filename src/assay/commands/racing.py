"""`assay mnist race`, `profile`, `export`: tables of a race and of layers, the network's file."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ..errors import AssayError
from ..mnist import checkpoint, data, inference, onnx_file
from ..mnist import profile as profiling
from ..mnist import race as racing
from ..mnist.fast.network import Fast
from ..mnist.fast.timing import kernel_seconds
from ..mnist.layers.training import loaded
from ..mnist.model import Sizes, initial
from ..mnist.network import Network
from ..mnist.train import EVALUATED, network
from ..mnist.train import order as training_order
from ..report.units import seconds

console = Console(highlight=False, soft_wrap=True)
CPU_PEERS = [
    name for name, peer in racing.PEERS.items() if peer.device == "cpu" and name != "eager"
]
"""Names that ask for the race on the CPU, where there is a GPU too."""
WIDTH = 150
"""Of the table: a pipe has 80 columns, which would cut every number in two."""


def race(
    folder: Path | None, download: bool, batch: int, steps: int, seed: int, peers: list[str]
) -> int:
    """Races and prints: phases, ratios with their intervals, and who wins or why nobody does. 0."""
    found = data.load(folder, download=download)
    if torch.cuda.is_available() and not any(name in CPU_PEERS for name in peers):
        from . import whole_race

        whole_race.race(found, batch, steps, seed, peers)
        return 0
    picked = racing.chosen(peers)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("racing", total=steps + racing.WARM)
        ran = racing.race(
            found, picked, batch=batch, steps=steps, seed=seed,
            seen=lambda done: progress.update(task, completed=done),
        )  # fmt: skip
    console.print(f"{found.source}; batch {batch}, {steps} steps in rounds, seed {seed}")
    Console(highlight=False, width=max(WIDTH, console.width)).print(table(ran))
    for comparison in racing.judged(ran):
        console.print(sentence(comparison))
    console.print("wall time on the host, each phase waited for; the first steps are not counted")
    return 0


def pinned(
    folder: Path | None, download: bool, batch: int, steps: int, seed: int, peers: list[str]
) -> int:
    """Times digits in pinned host memory beside digits on the device. 3 without a GPU, else 0."""
    if not torch.cuda.is_available():
        console.print("--pinned: no GPU here; copies to one are what it times")
        return 3
    from . import whole_race

    whole_race.pinned(data.load(folder, download=download), batch, steps, seed, peers)
    return 0


def table(ran: list[racing.Ran]) -> Table:
    """Medians of the phases and the total with its 95 % interval, and what must agree."""
    made = Table(box=None, pad_edge=False)
    for name in (
        "",
        *racing.PHASES,
        "total",
        "95 %",
        "mean",
        "first",
        "loss",
        "held out",
        "gradients",
    ):
        made.add_column(name, justify="left" if not name else "right", no_wrap=True)
    for r in sorted(ran, key=lambda r: r.median("total")[1]):
        low, middle, high = r.median("total")
        worst = max(r.agreements, key=lambda a: a.error)
        made.add_row(
            r.name + (" (ours)" if r.peer.ours else ""),
            *(seconds(r.median(phase)[1]) for phase in racing.PHASES),
            seconds(middle),
            f"{seconds(low)} to {seconds(high)}",
            seconds(fmean(r.seconds["total"])),
            seconds(r.first),
            f"{r.losses[-1]:.4f}",
            f"{r.accuracy:.1%}",
            f"{worst.error:.0e} of {worst.allowed:.0e}",
        )
    return made


def sentence(c: racing.Comparison) -> str:
    """One comparison in words."""
    if c.word == "no winner":
        return f"no winner against {c.peer}: {'; '.join(c.reasons)}"
    said = {
        "faster": f"ours is {c.ratio:.2f} times faster than {c.peer}",
        "slower": f"ours is {1 / c.ratio:.2f} times slower than {c.peer}",
        "same": f"ours is no faster and no slower than {c.peer}",
        "cannot tell": f"which is faster, ours or {c.peer}, this does not tell",
    }[c.word]
    return f"{said} (their time over ours: {c.low:.2f} to {c.high:.2f}, 95 %)"


def profile(
    folder: Path | None, download: bool, backend: str, batch: int, steps: int, seed: int
) -> None:
    """Prints the seconds of every layer, forward and backward, and their shares of the sum."""
    found = data.load(folder, download=download)
    if backend == "fast":
        return _profile_fast(found, batch, seed)
    net = Network(initial(Sizes(), seed), backend)
    spent = profiling.profile(net, found, batch=batch, steps=steps, seed=seed)
    whole = sum(s.median[1] for s in spent)
    made = Table(box=None, pad_edge=False)
    for name in ("layer", "kernel", "median", "95 %", "share"):
        made.add_column(name, justify="left" if name in ("layer", "kernel") else "right")
    for s in spent:
        low, middle, high = s.median
        interval = f"{seconds(low)} to {seconds(high)}"
        made.add_row(s.layer, s.op, seconds(middle), interval, f"{middle / whole:.1%}")
    console.print(f"{backend}, batch {batch}, {steps} steps on {net.device}; {found.source}")
    console.print(made)
    console.print(f"sum of medians {seconds(whole)}; each kernel is waited for by itself")


def _profile_fast(found: data.Data, batch: int, seed: int) -> None:
    net = Fast(initial(Sizes(), seed))
    images = torch.from_numpy(found.train.images.copy()).to(net.device)
    labels = torch.from_numpy(found.train.labels.copy()).to(net.device)
    order = training_order(seed, 0, len(labels))[:batch].contiguous().to(net.device)
    spent = kernel_seconds(net, net.load(images, labels, order)[0])
    whole = sum(spent.values())
    made = Table(box=None, pad_edge=False)
    for name in ("kernel", "median", "share"):
        made.add_column(name, justify="left" if name == "kernel" else "right")
    for name, took in spent.items():
        made.add_row(name, seconds(took), f"{took / whole:.1%}")
    console.print(f"fast, batch {batch}, on {net.device}; {found.source}")
    console.print(made)
    console.print(f"sum {seconds(whole)}; each kernel alone, again and again in a graph")


def export(kept: Path, to: Path) -> None:
    """Writes the network as ONNX and compares its logits in ONNX Runtime with ours."""
    state = checkpoint.load(kept)
    onnx_file.write(state, to)
    print(f"written to {to}: opset {onnx_file.OPSET}, batchnorm by the statistics of its batch")
    net, test = network(state.plan, state.parameters), data.sample().test
    images = torch.from_numpy(test.images[:EVALUATED].copy()).to(net.device)
    labels = torch.from_numpy(test.labels[:EVALUATED].copy()).to(net.device)
    x, _ = net.load(images, labels, torch.arange(len(images), device=net.device))
    ours = net.logits(x).cpu().numpy()
    pixels, _ = loaded(images.cpu(), labels.cpu(), torch.arange(len(images)), torch.ones(1))
    found = onnx_file.logits(to, pixels.numpy())
    off = onnx_file.difference(found, ours)
    if not off <= onnx_file.ALLOWED:
        raise AssayError(
            f"{to}: its logits in ONNX Runtime are {off:.1e} of the largest away from ours, "
            f"allowed {onnx_file.ALLOWED:.0e}: do not use it, and report this"
        )
    same = (found.argmax(1) == ours.argmax(1)).sum()
    print(
        f"ONNX Runtime agrees on {len(ours):,} digits of the sample: logits within {off:.1e} of "
        f"the largest, {same:,} digits read alike"
    )
    _read(*inference.side_by_side(net, x, pixels.to(net.device), state, to), len(ours))


def _read(found: list[inference.Read], why: str, count: int) -> None:
    """Prints how long each takes to read so many digits, and ours beside the others."""
    ours = found[0]
    print(f"reading {count:,} digits, in turns, {len(ours.samples)} rounds, wall time:")
    for one in found:
        low, middle, high = map(seconds, one.seconds)
        said = ""
        if one is not ours:
            least, times, most, word = one.over(ours)
            said = f"; ours is {word}: {times:.2f} times ({least:.2f} to {most:.2f}, 95 %)"
        print(f"  {one.name}: {middle} ({low} to {high}){said}")
    if why:
        print(f"  ONNX Runtime: not run: {why}")
