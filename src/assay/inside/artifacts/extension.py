"""`extension`: its CUDA half compiled by nvcc for an architecture, its C++ half as built.

Without a GPU the launcher runs the C++ half, so which kernels it would launch is not seen: all that
the source instantiates are shown.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from ... import cache, single
from ...doctor.bounded import run
from ...errors import NotRun
from ...single import Single
from ...types import replace
from ...ways.cuda import ptxas_report
from ...ways.extension import FLAGS
from . import machine_code, names
from .collecting import Found, Pick
from .cpp import part as library_part
from .model import Part

SECONDS = 300.0
NO_NVCC = "no nvcc here: pip install nvidia-cuda-nvcc, or install the CUDA toolkit"
TORCH_WITHOUT_CUDA = "-DC10_CUDA_NO_CMAKE_CONFIGURE_FILE"
"""A torch built without CUDA lacks a generated header, which matters on Windows alone."""


def collect(pick: Pick, arch: str) -> Found:
    """Raises BuildError with the compiler's first error."""
    one = pick()
    placed = single.place(one, "cpu")
    kernel = single.built(placed, "cpu", arch)
    if not kernel.build.key:
        raise NotRun(f"{one.label} names no source: nothing was compiled")
    found = Found(one, placed, arch, texts={"log": kernel.build.log})
    library = next(cache.place_of(kernel.build.key).glob("*.so"))
    found.parts.append(library_part(library, library.stem))
    source = one.variant.source
    assert source is not None
    cuda = source.with_suffix(".cu")
    try:
        if not cuda.is_file():
            raise NotRun(f"it has no CUDA half: there is no {cuda.name} beside {source.name}")
        _device(found, cuda, arch)
    except NotRun as reason:
        found.absent |= {"ptx": str(reason), "sass": str(reason)}
    return found


def _device(found: Found, source: Path, arch: str) -> None:
    """Adds the kernels of the CUDA half."""
    ptx, cubin, log = _compiled(found.one, source, arch)
    found.texts["ptx"] = ptx
    found.texts["log"] += f"\n{log}"
    reports = ptxas_report(log)
    sass, absent = {}, {}
    try:
        sass = machine_code.disassemble(cubin)
    except NotRun as reason:
        absent = {"sass": str(reason)}
    for entry, report in reports.items():
        name = names.brief(entry)
        found.parts.append(
            Part(
                name=name,
                entry=entry,
                report=replace(report, name=name),
                reported_by="nvcc's ptxas",
                texts={"sass": sass[entry]} if entry in sass else {},
                absent=absent,
                cubin=cubin,
            )
        )
    found.notes.append("nothing was launched, so all kernels that the source instantiates are here")


def _compiled(one: Single, source: Path, arch: str) -> tuple[str, bytes, str]:
    """(PTX, cubin, what nvcc said), kept in the build cache. Raises NotRun."""
    from torch.utils.cpp_extension import include_paths

    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise NotRun(NO_NVCC)
    folders = [source.parent, *(Path(f) for f in one.variant.include)]
    flags = [*FLAGS, *one.variant.flags, "-DWITH_CUDA", TORCH_WITHOUT_CUDA]
    includes = [f"-I{folder}" for folder in (*folders, *include_paths("cpu"))]
    command = [nvcc, "-cubin", f"-arch={arch}", "-lineinfo", "-Xptxas", "-v", *flags, *includes]
    version = run([nvcc, "--version"], SECONDS).text
    parts = {
        "way": "extension's CUDA half",
        "sources": cache.source_digests([source], folders),
        "command": command,
        "nvcc": version,
    }

    def make(folder: Path) -> str:
        with tempfile.TemporaryDirectory() as kept:
            keep = ["--keep", "--keep-dir", kept]
            done = run([*command, *keep, str(source), "-o", str(folder / "kernel.cubin")], SECONDS)
            if done.failure:
                raise NotRun(f"nvcc refuses {source.name}: {done.failure}")
            (ptx,) = Path(kept).glob("*.ptx")
            shutil.copy(ptx, folder / "kernel.ptx")
        return f"{' '.join(command)} {source}\n{done.text}"

    place, build = cache.build(f"{one.op.name} {source.name}", parts, make)
    ptx = (place / "kernel.ptx").read_text()
    return re.sub(r"\n{3,}", "\n\n", ptx), (place / "kernel.cubin").read_bytes(), build.log
