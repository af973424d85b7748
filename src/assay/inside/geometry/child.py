"""The child behind `assay geometry TARGET`: one variant on one case, its launches noted, not run.

What a kernel would have computed is left as it was, so a launch whose size depends on a result on
the device is not seen as it would be.

Messages: {op, label, case, flops, bytes, launches: [...]}, or {mistake | not_run: text}.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import torch

from ... import single, ways
from ...errors import AssayError, BuildError, LaunchError, NotRun
from ...op import cost, way_of
from ...processes.channel import Channel
from ...simt.adapters import KNOWN, Compiled
from ...target import Target
from ...types import Scalar
from . import assembler
from .limits import multiprocessor

Size = tuple[int, int, int]


@dataclass
class Noted:
    """In the place of a `simt.Watch`: what is launched, in order."""

    launches: list[tuple[Compiled, Size, Size, int, int]] = field(default_factory=list)
    """Kernel, grid, block, bytes of dynamic shared memory, bytes of the arrays that it is given."""

    def run(
        self, compiled: Compiled, grid: Size, block: Size, args: list[Any], shared: int
    ) -> None:
        """Notes a launch."""
        self.launches.append((compiled, grid, block, shared, _operand_bytes(args)))


def _operand_bytes(args: list[Any]) -> int:
    """Of the different arrays among the arguments: what a launch reads or writes at most once."""
    arrays = [arg for arg in args if hasattr(arg, "nbytes")]
    known = {_address(arg): int(arg.nbytes) for arg in arrays}
    return sum(known.values())


def _address(array: Any) -> int:
    return int(array.data_ptr()) if hasattr(array, "data_ptr") else id(array)


def main(channel: Channel, target: dict, wanted: str, case: dict[str, Scalar], arch: str) -> None:
    """Sends one message."""
    try:
        channel.send(**_noted(msgspec.convert(target, Target), wanted, case, arch))
    except AssayError as error:
        channel.send(mistake=str(error))
    except (NotRun, BuildError, LaunchError) as error:
        channel.send(not_run=str(error))


def _noted(target: Target, wanted: str, case: dict[str, Scalar], arch: str) -> dict[str, Any]:
    way = way_of(wanted)
    if reason := _absent(way):
        raise NotRun(f"{wanted}: {reason}")
    noted = Noted()
    compiled_for = _install(way, noted, arch)
    one = single.pick(target, wanted, case)
    placed = single.place(one, "cpu")
    kernel = single.built(placed, "cpu", arch, watch=noted)
    with torch.no_grad():
        kernel.run(placed.outputs, list(placed.inputs))
    if not noted.launches:
        raise NotRun(f"{one.label} launched no kernel on this case")
    known = assembler.report(kernel.build.log)
    return {
        "op": one.op.name,
        "label": one.label,
        "case": one.case.label,
        "compiled_for": compiled_for,
        "flops": cost(one.op, "flops", one.case),
        "bytes": cost(one.op, "bytes", one.case),
        "launches": [_launch(known, arch, *launch) for launch in noted.launches],
    }


def _absent(way: str) -> str:
    """Why this way can't be compiled here; empty if it can."""
    here = ways.here(way, "cpu")
    return "" if here.judge == "simt" or here.compiles else here.reason


def _install(way: str, noted: Noted, arch: str) -> str:
    """Hands launches of this process to `noted`; returns what its kernels are compiled for.

    Triton's and Numba's adapters compile for some architectures; for another that is newer, PTX of
    the newest older one without features of its own is assembled, as a driver would do.
    """
    if way == "cuda":
        return arch
    number = int(multiprocessor(arch).arch.removeprefix("sm_"))
    general = max(known for known in KNOWN if known < 90)
    taken = f"sm_{number if number in KNOWN else general}"
    if way == "triton":
        from ...simt.adapters import triton

        triton.install(noted.run, taken)
    else:
        from ...simt.adapters import numba

        numba.install(noted.run, taken)
    return taken


def _launch(
    known: dict[str, assembler.Taken],
    arch: str,
    compiled: Compiled,
    grid: Size,
    block: Size,
    n: int,
    operands: int,
) -> dict[str, Any]:
    said: dict[str, Any] = {"kernel": compiled.name, "grid": grid, "block": block, "shared": n}
    said["operand_bytes"] = operands
    try:
        taken = known.get(compiled.name)
        if taken is None:
            taken = known[compiled.name] = assembler.assembled(compiled.ptx, compiled.name, arch)
        return {**said, "taken": msgspec.to_builtins(taken), "why": ""}
    except NotRun as error:
        return {**said, "taken": None, "why": str(error)}
