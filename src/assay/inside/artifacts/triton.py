"""`triton`: launches noted, then each kernel compiled by Triton itself down to machine code."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import triton
from triton.backends import backends
from triton.backends.compiler import GPUTarget
from triton.compiler import compiler

from ...faults import told
from ...simt.adapters import Compiled as Launched
from ...simt.adapters import Size, capability
from ...simt.adapters import triton as adapter
from ...ways.cuda import ptxas_report
from . import machine_code
from .collecting import Found, Launches, Pick, dry, geometry, launched, sass_of
from .model import Part

LEVELS = ("ttir", "ttgir", "llir", "ptx")
Libraries = tuple[tuple[str, str], ...]


def collect(pick: Pick, arch: str) -> Found:
    """Raises NotRun for an architecture that Triton's launches can't be made for here."""
    launches = Launches()
    with noted() as kernels:
        with adapter.shim(launches.note, arch, tune="first") as shim:
            one, placed = dry(pick, arch)
        launched(one.label, launches)
        parts = [part(kernels, arch, *known) for known in launches]
    return Found(one, placed, arch, parts, notes=[str(tuned) for tuned in shim.tuned])


@contextlib.contextmanager
def noted() -> Iterator[list[Any]]:
    """Triton's compiled kernels, as they are made within it: their source and every level."""
    made: list[Any] = []
    begin = compiler.CompiledKernel.__init__

    def noting(self: Any, *args: Any, **named: Any) -> None:
        begin(self, *args, **named)
        made.append(self)

    with mock.patch.object(compiler.CompiledKernel, "__init__", noting):
        yield made


def part(
    kernels: list[Any],
    arch: str,
    compiled: Launched,
    grid: Size,
    block: Size,
    shared: int,
    count: int,
) -> Part:
    """Every level of one kernel that was launched."""
    known = _made(kernels, compiled)
    texts = {level: str(known.asm[level]) for level in LEVELS if level in known.asm}
    made, log, why = _whole(known, arch)
    absent = {"sass": why}
    if made is not None:
        texts |= {level: str(made.asm[level]) for level in LEVELS if level in made.asm}
        texts["log"] = log
        sass, absent = sass_of(made.asm["cubin"], compiled.name)
        texts |= sass
    report, by = ptxas_report(log).get(compiled.name), "Triton's ptxas"
    if report is None and made is not None:  # a Triton that keeps its ptxas' words to itself
        report, by = machine_code.resources(made.asm["cubin"]).get(compiled.name), "the cubin"
    return Part(
        name=compiled.name,
        entry=compiled.name,
        report=geometry(report, compiled.name, arch, grid, block, shared),
        reported_by=by if report else "",
        launches=count,
        texts=texts,
        absent=absent,
        cubin=made.asm["cubin"] if made is not None else b"",
        notes=tuple(f"{name}={value}" for name, value in compiled.settings),
    )


def _made(kernels: list[Any], compiled: Launched) -> Any:
    """Triton's object behind a launch: the one with the same PTX, but for the names of files."""

    def bare(ptx: str) -> list[str]:
        return [line for line in ptx.splitlines() if ".file" not in line]

    wanted = bare(compiled.ptx)
    return next(k for k in kernels if k.name == compiled.name and bare(str(k.asm["ptx"])) == wanted)


def _whole(known: Any, arch: str) -> tuple[Any, str, str]:
    """(a kernel compiled down to machine code, what ptxas said, "") or (None, log, reason).

    Compiled anew, since only compiling has a report.
    """
    number = capability(arch)
    target = GPUTarget("cuda", number, 32)
    usual = vars(backends["nvidia"].compiler(target).parse_options({}))
    given = known.metadata
    options = {n: _hashable(getattr(given, n)) for n in usual if hasattr(given, n)}
    options["extern_libs"] = _here(options.get("extern_libs", ()), usual["extern_libs"])
    said = io.StringIO()
    knobs = triton.knobs
    with (
        contextlib.redirect_stdout(said),
        mock.patch.object(knobs.compilation, "always_compile", True),
        mock.patch.object(knobs.nvidia, "dump_ptxas_log", True),
    ):
        try:
            made = triton.compile(known.src, target, options)
        except Exception as error:  # noqa: BLE001 - whatever stops it, the reason is shown
            return None, said.getvalue(), f"Triton can't assemble it for {arch}: {told(error)}"
    return made, said.getvalue(), ""


def _here(given: Libraries, usual: Libraries) -> Libraries:
    """Libraries of device code, those that came with a Triton gone since taken from this one.

    Triton's cache outlives the environment that filled it, and keeps that one's paths.
    """
    own = dict(usual)
    return tuple((n, path if Path(path).exists() else own.get(n, path)) for n, path in given)


def _hashable(value: Any) -> Any:
    """Triton's cache has kept tuples as lists."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
