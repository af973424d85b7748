"""`assay list`: operators, or one target's cases and variants, and what can run here."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.console import Console

from .. import ways
from ..describe import OpFacts
from ..pipeline import describe
from ..report import units
from ..session import Session
from ..target import library, parse


def show(targets: list[str]) -> None:
    """Prints the library's operators, or the contents of the targets."""
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        machine = session.machine()
        device = "cuda:0" if machine.gpus else "cpu"
        for text in targets or library():
            for op in describe(session, parse(text)):
                _op(console, op, device, brief=not targets)
    if not targets:
        console.print("\nassay list NAME shows its cases; assay bench NAME judges and times it")


def _op(console: Console, op: OpFacts, device: str, *, brief: bool) -> None:
    console.print(f"[bold]{op.name}[/bold]  {units.count(len(op.cases), 'case')}")
    if not brief:
        for case in op.cases:
            console.print(f"  case  {case.case.label}", soft_wrap=True)
    for variant in op.variants:
        found = ways.here(variant.way, device)
        state = "runs" if found.timed else found.reason
        if found.compiles and not found.judge:
            state += ": compiled only"
        number = len(variant.configurations)
        knobs = f" ({number} configurations)" if number > 1 else ""
        size = ""
        if not brief and variant.lines is not None:
            size = f"  {units.count(variant.lines, 'line')}"
        console.print(f"  {variant.name}{knobs}{size}  [dim]{state}[/dim]", soft_wrap=True)
