"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from . import cli_inside
from .commands.mnist_app import app as mnist_app
from .errors import AssayError
from .options import (
    Arch,
    Bench,
    Budget,
    CacheState,
    Case,
    Deadline,
    Device,
    Drop,
    Dtype,
    Fills,
    Inputs,
    Json,
    Like,
    Only,
    Quick,
    Require,
    Sanitize,
    Seed,
    Slow,
    Targets,
    Watch,
    Zoo,
)

app = typer.Typer(
    help="Find out whether a GPU kernel is right, how fast it really is, and why.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def check(
    targets: Targets,
    case: Case = None,
    dtype: Dtype = None,
    device: Device = "auto",
    arch: Arch = "",
    only: Only = None,
    slow: Slow = False,
    require: Require = None,
    seed: Seed = None,
    deadline: Deadline = "30s",
    like: Like = None,
    inputs: Inputs = None,
    fills: Fills = False,
    kernelbench: Bench = None,
    drop_barriers: Drop = False,
    sanitize: Sanitize = False,
    zoo: Zoo = True,
    as_json: Json = False,
) -> None:
    """Is it right? Every variant of a target on every case, against float64."""
    _run(locals(), timed=False)


@app.command()
def bench(
    targets: Targets,
    case: Case = None,
    dtype: Dtype = None,
    device: Device = "auto",
    arch: Arch = "",
    only: Only = None,
    budget: Budget = None,
    quick: Quick = False,
    slow: Slow = False,
    require: Require = None,
    seed: Seed = None,
    deadline: Deadline = "30s",
    like: Like = None,
    inputs: Inputs = None,
    fills: Fills = False,
    kernelbench: Bench = None,
    zoo: Zoo = False,
    watch: Watch = False,
    cache: CacheState = "",
    sustained: Annotated[
        str | None, typer.Option("--sustained", help="GPU: then run each on and on: 5s.")
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Host, device and wall time, memory, rates apart.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Is it right, and how fast? Checks, then times together what is right."""
    given = locals()
    if watch:
        from .commands import watch as watching

        raise typer.Exit(watching.run(given))
    _run(given, timed=True)


@app.command()
def tune(
    targets: Targets,
    case: Case = None,
    dtype: Dtype = None,
    device: Device = "auto",
    arch: Arch = "",
    only: Only = None,
    budget: Budget = None,
    quick: Quick = False,
    slow: Slow = False,
    seed: Seed = None,
    deadline: Deadline = "30s",
    like: Like = None,
    inputs: Inputs = None,
    fills: Fills = False,
    kernelbench: Bench = None,
    cache: CacheState = "",
    as_json: Json = False,
) -> None:
    """Judge and time every configuration, and keep the fastest of each case for this card."""
    from .commands import tuning

    raise typer.Exit(tuning.run({**locals(), "zoo": False}))


@app.command()
def compare(
    sides: Annotated[
        list[str],
        typer.Argument(metavar="A [B]", help="Rows, a kept run (last~1), REVISION:FILE.py."),
    ],
    only: Annotated[
        list[str] | None, typer.Option("-k", help="Only this; or, with A alone, both variants.")
    ] = None,
    fail_slower: Annotated[
        str, typer.Option("--fail-slower", help="Exit 1 if a case is slower by this: 3%.")
    ] = "",
    across: Annotated[
        list[str] | None,
        typer.Option("--across", help="Compare although this differs: card, method, cache, ..."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="Let it pass: cannot-tell, missing, unjudged."),
    ] = None,
    processes: Annotated[
        int, typer.Option("--processes", min=1, help="Fresh processes a side, where it measures.")
    ] = 3,
    case: Case = None,
    dtype: Dtype = None,
    device: Device = "auto",
    arch: Arch = "",
    budget: Budget = None,
    quick: Quick = False,
    seed: Seed = None,
    svg: Annotated[Path | None, typer.Option("--svg", help="Draw it in this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Which cases became slower: two files of rows, two revisions, or two variants."""
    from .commands import comparing

    raise typer.Exit(comparing.command(locals()))


@app.command("rows")
def rows_(
    source: Annotated[str, typer.Argument(metavar="ROWS", help="A file of rows, or a kept run.")],
    to: Annotated[Path, typer.Option("--to", help="A new file.")],
    form: Annotated[
        str, typer.Option("--as", help="pytest-benchmark, nvbench or jsonl.")
    ] = "pytest-benchmark",
) -> None:
    """Rows as other programs write them, and back."""
    from .commands import comparing

    comparing.convert(source, form, to)


@app.command("list")
def list_(targets: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Operators, their cases and variants, and where each variant can run here."""
    from .commands import listing

    listing.show(targets or [])


@app.command()
def new(
    name: str, way: Annotated[str, typer.Option("--way", help="triton, cuda or cpp.")] = ""
) -> None:
    """Write NAME.py: a starting file that already passes `assay check`."""
    from .commands import starting

    starting.write(name, way)


@app.command()
def doctor(as_json: Json = False) -> None:
    """Driver, GPUs, toolkits, compilers and versions: what is there, and what mends the rest."""
    from rich.console import Console

    from . import doctor as doctors

    report = doctors.diagnose()
    if as_json:
        import msgspec

        print(msgspec.json.encode(report).decode())
    else:
        doctors.render(report, Console())
    raise typer.Exit(1 if report.problems else 0)


@app.command()
def roofs(
    device: Device = "auto",
    again: Annotated[bool, typer.Option("--again", help="Measure anew.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as one JSON object.")] = False,
) -> None:
    """What this machine can do at most: ceilings of traffic, arithmetic, launches, measured."""
    from .commands import roofs as command

    raise typer.Exit(command.show(device, again=again, as_json=as_json))


@app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove them.")] = False,
    match: Annotated[str, typer.Argument(help="Only builds with this in their name.")] = "",
    log: Annotated[
        bool, typer.Option("--log", help="All about each: parts, files, binding, commands.")
    ] = False,
) -> None:
    """The builds that are kept, and where; with --clear, remove them."""
    from .commands import caching

    caching.show(match, clear=clear, log=log)


selftests = typer.Typer(
    help="Assay tested on kernels of which everybody knows what must be said.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(selftests, name="selftest")


@selftests.command("verdict")
def selftest_verdict(
    match: Annotated[str, typer.Argument(help="Only files with this in their name.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the score as JSON.")] = False,
) -> None:
    """Wrong kernels, each to be named, and right but unusual ones, none to be accused."""
    from .commands import selftest

    raise typer.Exit(selftest.verdict(match, as_json=as_json))


@selftests.command("clock")
def selftest_clock(
    device: Annotated[
        str, typer.Option(help="cpu, cuda or cuda:1; auto: the GPU if any.")
    ] = "auto",
    processes: Annotated[int, typer.Option(help="Fresh processes, at least 2.", min=2)] = 8,
    comparisons: Annotated[
        int, typer.Option(help="Comparisons of each kind in each process.", min=1)
    ] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """The clock tried on spins of known length: bias, false alarms, misses, repeatability."""
    from .commands import ruler

    raise typer.Exit(ruler.clock(device, processes, comparisons, as_json=as_json))


app.add_typer(mnist_app, name="mnist")


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from . import __version__

        print(f"assay {__version__}")
        raise typer.Exit


app.registered_commands += cli_inside.app.registered_commands


def _run(given: dict[str, Any], *, timed: bool) -> None:
    from .commands import running

    raise typer.Exit(running.run(given, timed=timed))


def main() -> None:
    """The command `assay`: a user's mistake is one message and exit code 2."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        app()
    except AssayError as error:
        print(f"assay: {error}", file=sys.stderr)
        raise SystemExit(2) from None
