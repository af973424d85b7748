"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .commands.mnist_app import app as mnist_app
from .errors import AssayError

app = typer.Typer(
    help="Find out whether a GPU kernel is right, how fast it really is, and why.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Targets = Annotated[
    list[str],
    typer.Argument(metavar="TARGET...", help="An operator, file.py, file.py:name or package:name."),
]
Case = Annotated[str | None, typer.Option("--case", help="Only cases with these values: 'n=4096'.")]
Dtype = Annotated[str | None, typer.Option("--dtype", help="Only these: float32,bfloat16.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:1.")]
Arch = Annotated[str, typer.Option("--arch", help="Compile for this, where no GPU says: sm_90.")]
Only = Annotated[
    list[str] | None, typer.Option("-k", help="Only this way or variant; may be a pattern.")
]
Budget = Annotated[str | None, typer.Option("--budget", help="Sampling time a case: 30s.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer samples.")]
Slow = Annotated[bool, typer.Option("--slow", help="Let interpreter and simulator take any time.")]
Require = Annotated[
    list[str] | None, typer.Option("--require", help="Fail if this way was not run.")
]
Json = Annotated[bool, typer.Option("--json", help="Print rows alone, one JSON object a line.")]
Seed = Annotated[int | None, typer.Option("--seed", help="The same inputs again.")]
Deadline = Annotated[str, typer.Option("--deadline", help="Longest run of one case: 30s.")]
Like = Annotated[
    str | None, typer.Option("--like", help="What a bare function computes: 'x.softmax(-1)'.")
]
Inputs = Annotated[
    list[str] | None, typer.Option("--input", help="One input of it: 'x=normal(4096, 8192)'.")
]
Fills = Annotated[bool, typer.Option("--fills", help="The function fills outputs given first.")]
One = Annotated[str, typer.Option("-k", help="The variant: way/name, 'way/name BLOCK=256'.")]
Zoo = Annotated[
    bool,
    typer.Option("--zoo/--no-zoo", help="Hostile inputs too: sizes, values, layouts."),
]
Drop = Annotated[
    bool,
    typer.Option("--drop-barriers", help="Without a GPU: which barriers a kernel needs."),
]
Sanitize = Annotated[
    bool, typer.Option("--sanitize", help="On a GPU: each kernel under compute-sanitizer's tools.")
]
Watch = Annotated[
    bool, typer.Option("--watch", help="Judge and time it anew whenever its file is saved.")
]
Bench = Annotated[str | None, typer.Option("--kernelbench", help="File with Model and get_inputs.")]


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
    cache: Annotated[
        str, typer.Option("--cache", help="Before each sample: cold, dirty, hot or rotated.")
    ] = "",
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
def debug(
    target: Annotated[str, typer.Argument(metavar="TARGET")],
    variant: One,
    case: Annotated[
        str | None, typer.Option("--case", help="The case: 'n=10'; default: the smallest.")
    ] = None,
    arch: Arch = "",
    device_debug: Annotated[
        bool, typer.Option("--device-debug", help="Device code for cuda-gdb (cuda: -G).")
    ] = False,
) -> None:
    """One variant on a small case, value by value; and the command lines of debuggers."""
    from .commands import debugging

    raise typer.Exit(debugging.run(target, variant, case or "", arch, device_debug=device_debug))


@app.command()
def count(
    target: Annotated[str, typer.Argument(metavar="TARGET")],
    variant: One,
    case: Annotated[
        str | None, typer.Option("--case", help="The case: 'n=10'; default: the smallest.")
    ] = None,
    arch: Arch = "",
    as_json: Json = False,
) -> None:
    """What a kernel does, exactly, line by line: instructions, sectors, bank conflicts."""
    from .commands import counting

    raise typer.Exit(counting.run(target, variant, case or "", arch, as_json=as_json))


@app.command("geometry")
def geometry_(
    target: Annotated[str, typer.Argument(metavar="[TARGET]")] = "",
    variant: Annotated[
        str, typer.Option("-k", help="The variant: way/name; default: all, without counts.")
    ] = "",
    case: Annotated[
        str | None, typer.Option("--case", help="The case: 'n=10'; default: the smallest.")
    ] = None,
    arch: Arch = "",
    sms: Annotated[int | None, typer.Option("--sms", help="Multiprocessors of the GPU.")] = None,
    carveout: Annotated[
        str, typer.Option("--carveout", help="Shared memory set to: bytes, most or predicted.")
    ] = "",
    grid: Annotated[str, typer.Option("--grid", help="Without a target: 16,32,3.")] = "",
    block: Annotated[str, typer.Option("--block", help="Threads of a block: 128 or 32,4.")] = "",
    registers: Annotated[int | None, typer.Option("--registers", help="Of a thread.")] = None,
    static_shared: Annotated[
        int | None, typer.Option("--static-shared", help="Bytes of a block.")
    ] = None,
    dynamic_shared: Annotated[
        int | None, typer.Option("--dynamic-shared", help="Bytes of a block.")
    ] = None,
    barriers: Annotated[int | None, typer.Option("--barriers", help="Of a block.")] = None,
    counts: Annotated[
        bool, typer.Option("--counts/--no-counts", help="Run it on the CPU for its accesses too.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Without a GPU: blocks, threads, occupancy and its limiter, waves, coalescing, conflicts."""
    given = locals()
    from .commands import geometry

    given["case"] = case or ""
    raise typer.Exit(geometry.run(geometry.Options(**given)))


@app.command("map")
def map_(
    target: Annotated[str, typer.Argument(metavar="TARGET")],
    variant: One,
    case: Annotated[
        str | None, typer.Option("--case", help="The case: 'n=10'; default: the smallest.")
    ] = None,
    arch: Arch = "",
    by: Annotated[str, typer.Option("--by", help="Draw who wrote: block or thread.")] = "block",
    output: Annotated[str, typer.Option("--output", help="Only this: 0, or a name.")] = "",
    stepped: Annotated[
        bool, typer.Option("--stepped", help="In Triton's interpreter or Numba's simulator.")
    ] = False,
    as_json: Json = False,
    svg: Annotated[Path | None, typer.Option("--svg", "--to", help="Draw it in this file.")] = None,
) -> None:
    """Which program or thread reads and writes which elements, and what nobody writes."""
    from .commands import mapping

    options: dict[str, Any] = {"by": by, "output": output, "stepped": stepped}
    raise typer.Exit(
        mapping.run(target, variant, case or "", arch, as_json=as_json, to=svg, **options)
    )


@app.command()
def export(
    target: Annotated[str, typer.Argument(metavar="TARGET")],
    variant: One,
    to: Annotated[Path, typer.Option("--to", help="A new or empty folder.")],
    case: Annotated[
        str | None, typer.Option("--case", help="The case: 'n=1000'; default: a small one.")
    ] = None,
    arch: Arch = "",
) -> None:
    """A cuda variant as a standalone CUDA program, an extension as a project to install."""
    from .commands import exporting

    exporting.run(target, variant, case or "", arch, to)


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


if __name__ == "__main__":
    main()
