"""`assay mnist race` on a GPU: tables of whole steps, of the phases of a step, and the verdict."""

from __future__ import annotations

from statistics import fmean

from rich.table import Table

from ..mnist import race as racing
from ..mnist.data import Data
from ..mnist.whole import pinned as pinning
from ..mnist.whole import racing as whole
from ..mnist.whole.bench import BURST
from ..mnist.whole.history import gains
from ..report.units import seconds
from .racing import WIDTH, Console, console, sentence
from .racing import table as phases


def race(found: Data, batch: int, steps: int, seed: int, peers: list[str]) -> None:
    """Races whole steps, then a part of the peers phase by phase, and prints both."""
    with console.status("racing") as status:
        result = whole.race(
            found, batch=batch, steps=steps, seed=seed, peers=peers,
            seen=lambda what: status.update(f"{what}"),
        )  # fmt: skip
    wide = Console(highlight=False, width=max(WIDTH, console.width))
    console.print(f"{found.source}; batch {batch}, {steps} steps in bursts of {BURST}, seed {seed}")
    wide.print(table(result))
    for absent in result.absent:
        console.print(f"did not race: {absent.name}: {absent.reason}")
    for comparison in racing.judged(result.ran):
        console.print(sentence(comparison))
    for g in gains(result.ran)[1:]:
        console.print(
            f"history: {g.idea}: {seconds(g.seconds)}, {g.ratio:.2f} times faster than "
            f"{g.before} ({g.low:.2f} to {g.high:.2f}, 95 %)"
        )
    if result.no_joules:
        console.print(f"no energy: {result.no_joules}")
    console.print(
        "device time of whole steps, launched behind a busy wait; host: launched and waited for"
    )
    if peers:
        return
    with console.status("the phases, unfused"):
        ran = racing.race(
            found, racing.chosen([], "cuda"), batch=batch, steps=racing.LEAST, seed=seed
        )
    console.print("phases of a step, unfused: launched by the host, each waited for")
    wide.print(phases(ran))


def table(result: whole.Result) -> Table:
    """Medians of a step with their 95 % intervals, the fastest first, and what must agree."""
    made = Table(box=None, pad_edge=False)
    columns = ("", "class", "a step", "95 %", "mean", "host", "images/s", "mJ", "made in", "memory")
    for name in (*columns, "loss", "held out", "gradients"):
        made.add_column(name, justify="left" if name in ("", "class") else "right", no_wrap=True)
    for r in sorted(result.ran, key=lambda r: r.median("total")[1]):
        low, middle, high = r.median("total")
        worst = max(r.agreements, key=lambda a: a.error / a.allowed)
        made.add_row(
            r.name + (" (ours)" if r.peer.ours else ""),
            r.peer.precision,
            seconds(middle),
            f"{seconds(low)} to {seconds(high)}",
            seconds(fmean(r.seconds["total"])),
            seconds(result.host[r.name]),
            f"{result.batch / middle:,.0f}",
            f"{1e3 * result.joules[r.name]:.3g}" if r.name in result.joules else "-",
            seconds(r.first),
            f"{result.bytes[r.name] / 1e6:,.0f} MB",
            f"{r.losses[-1]:.4f}",
            f"{r.accuracy:.2%}",
            f"{worst.error:.0e} of {worst.allowed:.0e}",
        )
    return made


PINNED = ("fast", "compile channels_last + graph")
"""Who is timed with digits in pinned host memory, unless others are named."""


def pinned(found: Data, batch: int, steps: int, seed: int, peers: list[str]) -> None:
    """Times peers with their digits in pinned host memory beside digits on the device."""
    with console.status("timing") as status:
        seen, absent = pinning.beside(
            found, batch=batch, names=peers or PINNED, steps=steps, seed=seed,
            seen=lambda what: status.update(f"{what}"),
        )  # fmt: skip
    console.print(f"{found.source}; batch {batch}, {steps} steps in bursts of {BURST}, seed {seed}")
    Console(highlight=False, width=max(WIDTH, console.width)).print(pinned_table(seen))
    for other in absent:
        console.print(f"not timed: {other.name}: {other.reason}")
    for one in seen:
        if one.no_joules:
            console.print(f"no energy: {one.name}: {one.no_joules}")
    console.print(
        "laid by the host: choosing a batch's digits in host memory, not in the other times"
    )


def pinned_table(seen: list[pinning.Beside]) -> Table:
    """A step of each peer both ways, their ratio, and whether both trained alike."""
    made = Table(box=None, pad_edge=False)
    columns = ("", "on the device", "pinned", "pinned / device", "laid by the host", "mJ", "losses")
    for name in columns:
        made.add_column(name, justify="left" if not name else "right", no_wrap=True)
    for one in seen:
        low, middle, high = one.ratio
        joules = (f"{1e3 * j:.3g}" if j is not None else "-" for j in one.joules)
        made.add_row(
            one.name,
            *(seconds(one.median(kind)[1]) for kind in ("resident", "pinned")),
            f"{middle:.3f} ({low:.3f} to {high:.3f})" if one.holds else "no ratio",
            seconds(one.laying),
            " and ".join(joules),
            f"{one.apart:.1e} apart",
        )
    return made
