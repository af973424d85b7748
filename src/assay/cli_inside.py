"""Commands that look inside a kernel; cli.py adds them to the others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .options import Arch, Device, Fills, Inputs, Json, Like, One, Only

app = typer.Typer()


@app.command()
def show(
    target: Annotated[str, typer.Argument(metavar="TARGET")],
    only: Only = None,
    level: Annotated[
        str,
        typer.Option(
            "--level",
            help="summary, geometry, fx, inductor, ttir, ttgir, llir, ptx, sass, beside, log, asm.",
        ),
    ] = "summary",
    case: Annotated[
        str | None, typer.Option("--case", help="The case: 'n=4096'; default: a large one.")
    ] = None,
    arch: Arch = "",
    source: Annotated[
        bool, typer.Option("--source", help="Lines of source beside their SASS or PTX.")
    ] = False,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--diff", metavar="A B", help="Variants, knobs, files, or revisions ('.': now)."
        ),
    ] = None,
    from_compiled: Annotated[
        bool,
        typer.Option("--from-compiled", help="Write what torch.compile generates as an Op file."),
    ] = False,
    like: Like = None,
    inputs: Inputs = None,
    fills: Fills = False,
    to: Annotated[
        Path | None, typer.Option("--to", help="The file to write, with --from-compiled.")
    ] = None,
    fork: Annotated[
        Path | None, typer.Option("--fork", help="Copy the file as a new version of itself.")
    ] = None,
    lineage: Annotated[
        bool, typer.Option("--lineage", help="Its versions, with verdict and speed from the runs.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All levels as one object.")] = False,
) -> None:
    """What compilers make of a kernel: registers, spills, PTX, SASS; no GPU is needed."""
    from .commands import showing

    raise typer.Exit(showing.command(locals()))


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
def fuse(
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help="'sigmoid(a + b * c)'")],
    to: Annotated[Path, typer.Option("--to", help="The file to write: chain.py, with chain.cu.")],
) -> None:
    """Write a chain of elementwise functions as one kernel in CUDA C++ and in Triton."""
    from .commands import fusing

    raise typer.Exit(fusing.run(formula, to))


@app.command()
def launches(
    target: Annotated[str, typer.Argument(metavar="TARGET")],
    only: Only = None,
    case: Annotated[
        str | None, typer.Option("--case", help="The case: 'n=4096'; default: the largest.")
    ] = None,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="All cases, not the largest alone.")
    ] = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """What a call launches: kernels, copies, memory, host time; eager and compiled, or -k."""
    from .commands import launching

    raise typer.Exit(
        launching.run(target, only or (), case or "", device, sweep=sweep, as_json=as_json)
    )


@app.command()
def profile(
    target: Annotated[str, typer.Argument(metavar="[TARGET]")] = "",
    variant: Annotated[str, typer.Option("-k", help="The variant: way/name, knobs.")] = "",
    case: Annotated[
        str | None, typer.Option("--case", help="The case: 'n=10'; default: the largest.")
    ] = None,
    device: Device = "auto",
    wait: Annotated[int, typer.Option("--wait", help="Calls that are not watched.", min=0)] = 1,
    warmup: Annotated[int, typer.Option("--warmup", help="Watched, thrown away.", min=0)] = 1,
    active: Annotated[int, typer.Option("--active", help="Watched and kept.", min=1)] = 2,
    rows: Annotated[int, typer.Option("--rows", help="Most lines of a table.", min=1)] = 10,
    flame: Annotated[
        bool, typer.Option("--flame", help="With Python's stacks, and a flame graph as SVG.")
    ] = False,
    ncu: Annotated[bool, typer.Option("--ncu", help="Counters by Nsight Compute.")] = False,
    drill: Annotated[
        bool, typer.Option("--drill", help="A timeline, then ncu on its hottest kernels.")
    ] = False,
    nsys: Annotated[bool, typer.Option("--nsys", help="Print Nsight Systems' commands.")] = False,
    read: Annotated[
        Path | None,
        typer.Option(
            "--read", help="Of another tool: .json, .ncu-rep, CSV, SQLite, tables of nsys."
        ),
    ] = None,
    to: Annotated[Path | None, typer.Option("--to", help="Keep files in this folder.")] = None,
) -> None:
    """Where the time of a call goes: timeline, kernels, copies, waits; counters with --ncu."""
    given = locals()
    from .commands import profiling

    given["case"] = case or ""
    raise typer.Exit(profiling.run(profiling.Options(**given)))


@app.command()
def explain(
    what: Annotated[
        str, typer.Argument(metavar="[TARGET|RUN|FILE]", help="Default: the last run.")
    ] = "last",
    variant: Annotated[str, typer.Option("-k", help="Of a TARGET: way/name, knobs.")] = "",
    case: Annotated[
        str | None, typer.Option("--case", help="Of a TARGET: 'n=10'; default: the largest.")
    ] = None,
    arch: Arch = "",
    run: Annotated[
        str, typer.Option("--run", help="Take times of a TARGET from this run; default: the last.")
    ] = "",
    prove: Annotated[
        bool, typer.Option("--prove", help="Try the first findings by experiments on the GPU.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the roofline in this .svg file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Why it is as fast as it is, and what would make it faster: causes with their evidence."""
    given = locals()
    from .commands import explaining

    given["case"] = case or ""
    raise typer.Exit(explaining.run(explaining.Options(**given)))
