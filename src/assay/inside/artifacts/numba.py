"""`numba`: launches noted, their PTX assembled by the ptxas that is here."""

from __future__ import annotations

from ...simt.adapters import Compiled as Launched
from ...simt.adapters import Size
from ...simt.adapters import numba as adapter
from . import names
from .collecting import Found, Launches, Pick, assembled, dry, geometry, launched
from .model import Part

NOTE = (
    "Numba's own PTX; on a GPU, Numba has it linked by nvJitLink or the driver, whose version may "
    "choose other registers than this ptxas"
)


def collect(pick: Pick, arch: str) -> Found:
    """Raises NotRun for what the adapter can't compile, with the reason."""
    launches = Launches()
    with adapter.shim(launches.note, arch):
        one, placed = dry(pick, arch)
    launched(one.label, launches)
    return Found(one, placed, arch, [_part(arch, *known) for known in launches], notes=[NOTE])


def _part(arch: str, compiled: Launched, grid: Size, block: Size, shared: int, count: int) -> Part:
    most = dict(compiled.settings).get("max_registers")
    flags = ("-lineinfo", *([f"--maxrregcount={most}"] if most else []))
    made, texts, absent = assembled(compiled.ptx, compiled.name, arch, flags)
    log = {"log": made.log} if made else {}
    name = names.brief(compiled.name)
    return Part(
        name=name,
        entry=compiled.name,
        report=geometry(
            made.reports.get(compiled.name) if made else None, name, arch, grid, block, shared
        ),
        reported_by=made.by if made else "",
        launches=count,
        texts={"ptx": compiled.ptx, **texts, **log},
        absent=absent,
        cubin=made.cubin if made else b"",
        notes=tuple(f"{name}={value}" for name, value in compiled.settings),
    )
