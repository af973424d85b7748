"""`assay debug`: one variant on a small case, value by value, and how to attach a debugger."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .. import ways
from ..cases import parse_values
from ..errors import AssayError
from ..op import WAYS
from ..processes import Ended, TimedOut
from ..report import units
from ..session import Session
from ..target import parse
from ..types import OUTCOMES, Machine

SECONDS = 600.0
"""For the build, or for the run: a simulator may take its time."""
LOG_LINES = 40
STEPPED = {
    "triton": (
        "TRITON_INTERPRET=1",
        "print and breakpoint() inside the kernel, in the interpreter",
    ),
    "numba": (
        "NUMBA_ENABLE_CUDASIM=1",
        "print and breakpoint() inside the kernel, in the simulator",
    ),
}
UNCACHED = "PYTORCH_NO_CUDA_MEMORY_CACHING=1"
"""So that every tensor is an allocation of its own, whose ends compute-sanitizer knows."""


def run(target: str, variant: str, case: str, arch: str, *, device_debug: bool) -> int:
    """Prints the close-up; exit code 0 right, 1 wrong, 3 not run. Raises AssayError."""
    console = Console(highlight=False)
    values = parse_values(case) if case else {}
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        machine = session.machine()
        device = "cuda:0" if machine.gpus else "cpu"
        args = {
            "target": msgspec.to_builtins(parse(target)),
            "wanted": variant,
            "case": values,
            "device": device,
            "arch": arch or _arch(machine),
            "flags": ["-G"] if device_debug and variant.startswith("cuda") else [],
        }
        way = variant.split()[0].split("/")[0]
        env = {**(ways.stepped(way, device).env if way in WAYS else {}), "CUDA_CACHE_DISABLE": "1"}
        name = f"debug {variant}"
        said: dict[str, Any] = {}
        with session.child("assay.closeup:main", args, name=name, env=env) as child:
            while "outputs" not in said and "word" not in said:
                try:
                    said.update(child.receive(SECONDS))
                except TimedOut:
                    said.update(word="timed out", reason=f"no answer after {SECONDS:.0f} s")
                except Ended as ended:
                    said.update(
                        word="crashed", reason=f"its process ended with {ended.status.label}"
                    )
                if "mistake" in said:
                    raise AssayError(said["mistake"])
        _show(console, said)
        _printed(console, session.log_tail(name, LOG_LINES))
    if "case" in said:
        _recipes(console, target, variant, said)
    return _code(said)


def _arch(machine: Machine) -> str:
    if not machine.gpus:
        return ways.DEFAULT_ARCH
    major, minor = machine.gpus[0].capability
    return f"sm_{major}{minor}"


def _code(said: dict[str, Any]) -> int:
    if "word" in said:
        return {"fail": 1}.get(OUTCOMES[said["word"]], 3)
    if said["faults"] or any(out["bad"] or out.get("form") for out in said["outputs"]):
        return 1
    return 0 if said["judge"] else 3


def _show(console: Console, said: dict[str, Any]) -> None:
    if "case" in said:
        console.print(f"[bold]{said['op']}[/bold]  {said['label']}  {said['case']}\n")
    for given in said.get("inputs", ()):
        values = " ".join(given["values"])
        console.print(f"  {given['name']}  [dim]{given['kind']}[/dim]  {values}", soft_wrap=True)
    for kernel in said.get("kernels", ()):
        _kernel(console, kernel)
    if said.get("targets"):
        _targets(console, said["targets"])
    for out in said.get("outputs", ()):
        _output(console, out)
    for fault in said.get("faults", ()):
        console.print(f"\n  {fault}", markup=False, soft_wrap=True)
    if "word" in said:
        console.print(f"\n{said['word']}: {said['reason']}", markup=False, soft_wrap=True)
    elif not said["judge"]:
        console.print(f"\nnot run: {said['why']}; compiled only", soft_wrap=True)


def _kernel(console: Console, kernel: dict[str, Any]) -> None:
    grid, block = kernel["grid"], kernel["block"]
    shared = (kernel["shared_bytes"] or 0) + (kernel["dynamic_shared_bytes"] or 0)
    console.print(f"\n  {kernel['name']}", markup=False, soft_wrap=True)
    console.print(
        f"    grid {tuple(grid)}  block {tuple(block)}  shared {units.size(shared)} a block"
    )
    spilled = (kernel["spill_store_bytes"] or 0) + (kernel["spill_load_bytes"] or 0)
    console.print(f"    {kernel['registers']} registers a thread, {spilled} bytes spilled")


def _targets(console: Console, found: dict[str, Any]) -> None:
    ptx = f"PTX {found['ptx_version']} for {found['ptx_target']} and later"
    console.print(f"    holds machine code for {found['cubin']} alone, and {ptx}")
    if "load" in found:
        native, compiled = map(units.seconds, found["load"])
        console.print(f"    loading takes {native} from machine code, {compiled} from PTX")
    console.print(f"    {found['files']}", soft_wrap=True)


def _output(console: Console, out: dict[str, Any]) -> None:
    console.print(f"\n  {out['name']}  [dim]{out['kind']}[/dim]")
    if out.get("form"):
        console.print(f"  wrong: {out['form']}", markup=False)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for name in ("", "output", "expected", "difference", "allowed", ""):
        table.add_column(name, justify="right")
    for row in out["rows"]:
        cells = (row["at"], row["output"], row["expected"], row["difference"], row["allowed"])
        table.add_row(*map(Text, (*cells, "<- wrong" if row["wrong"] else "")))
    console.print(table)
    if out["bad"]:
        which = f"{out['bad']:,} of {out['total']:,} elements"
        console.print(f"  wrong: {which}, first at {out['first']}", markup=False)
    elif out["bad"] == 0:
        console.print(f"  all {units.count(out['total'], 'element')} within what rounding allows")


def _printed(console: Console, log: str) -> None:
    if log.strip():
        console.print("\nwhat it printed:")
        console.print(log, markup=False, soft_wrap=True)


def _recipes(console: Console, target: str, variant: str, said: dict[str, Any]) -> None:
    way = said["way"]
    once = ["python", "-m", "assay.commands.once", target, "-k", said["label"]]
    line = shlex.join([*once, "--case", said["case"]])
    stepped = f"{line} --device-debug" if way == "cuda" else line
    recipes: list[tuple[str, str]] = []
    if way in STEPPED:
        switch, what = STEPPED[way]
        recipes.append((what, f"{switch} {line}"))
    if way in ("cuda", "extension", "triton", "numba"):
        recipes.append(("step through the kernel", f"cuda-gdb --args {stepped}"))
        for tool in ("memcheck", "racecheck", "initcheck"):
            sanitizer = f"{UNCACHED} compute-sanitizer --report-api-errors no --tool {tool}"
            recipes.append((f"let {tool} watch every access", f"{sanitizer} {line}"))
    if way in ("cpp", "extension"):
        recipes.append(("step through the C++", f"gdb --args {line}"))
    if way in ("python", "eager", "compiled"):
        recipes.append(
            ("step through the Python", line.replace("python -m", "python -m pdb -m", 1))
        )
    console.print("\nnext:")
    for what, command in recipes:
        console.print(f"  # {what}\n  {command}", markup=False, soft_wrap=True)
