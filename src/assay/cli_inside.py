"""The command line of what looks inside a call: `assay profile`, `assay explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:1.")]
Arch = Annotated[str, typer.Option("--arch", help="Compile for this, where no GPU says: sm_90.")]


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
    nsys: Annotated[bool, typer.Option("--nsys", help="Print Nsight Systems' commands.")] = False,
    read: Annotated[
        Path | None, typer.Option("--read", help="Of another tool: .json, .ncu-rep, CSV, SQLite.")
    ] = None,
    to: Annotated[Path | None, typer.Option("--to", help="Keep files in this folder.")] = None,
) -> None:
    """Where the time of a call goes: timeline, kernels, copies, waits; counters with --ncu."""
    given = locals()
    from .commands import profiling

    given["case"] = case or ""
    raise typer.Exit(profiling.run(profiling.Options(**given)))


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
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Why it is as fast as it is, and what would make it faster: causes with their evidence."""
    given = locals()
    from .commands import explaining

    given["case"] = case or ""
    raise typer.Exit(explaining.run(explaining.Options(**given)))
