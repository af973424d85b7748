"""From C++ to a library that can be called: g++, with the results kept by content."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

from .. import cache
from ..errors import BuildError, NotRun

RUNTIME = Path(__file__).parent / "runtime"
FLAGS = (
    "-std=c++17",
    "-O2",
    "-ftree-vectorize",
    "-fvect-cost-model=dynamic",
    "-march=native",
    # IEEE arithmetic as written: a product and a sum are not made one operation.
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-pthread",
    "-w",
)


@lru_cache
def compiler() -> tuple[str, str]:
    """(path, version) of g++. Raises NotRun where there is none."""
    path = shutil.which(os.environ.get("CXX", "g++"))
    if path is None:
        raise NotRun("running compiled GPU code needs g++: apt install g++")
    asked = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    return path, asked.stdout.splitlines()[0]


@lru_cache
def _machine() -> str:
    """What `-march=native` means here."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _parts(**more: Any) -> dict[str, Any]:
    return {"compiler": compiler()[1], "flags": FLAGS, "machine": _machine(), **more}


@lru_cache
def _sources() -> dict[str, str]:
    return {p.name: p.read_text() for p in sorted(RUNTIME.iterdir()) if p.suffix in (".h", ".cc")}


def _digest(names: Callable[[str], bool]) -> str:
    text = "".join(name + text for name, text in _sources().items() if names(name))
    return hashlib.sha256(text.encode()).hexdigest()


def _gxx(arguments: list[str]) -> str:
    command = [compiler()[0], *FLAGS, f"-I{RUNTIME}", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise BuildError(_first(ran.stderr), ran.stderr)
    return f"{' '.join(command)}\n{ran.stderr}"


def _first(log: str) -> str:
    return next((line for line in log.splitlines() if "error" in line), log[:200])


TENSOR = ("tensor.cc", "wmma.cc")
"""Half of all that is to be compiled, and most kernels call none of it."""


@lru_cache
def runtime(*, tensor: bool = False) -> ctypes.CDLL:
    """The library that all kernels share (memory, barriers, scheduling), or its tensor cores."""
    name = "tensor" if tensor else "runtime"

    def make(folder: Path) -> str:
        def one(source: str) -> str:
            return _gxx(["-O3", "-c", str(RUNTIME / source), "-o", str(folder / f"{source}.o")])

        names = [n for n in _sources() if n.endswith(".cc") and (n in TENSOR) == tensor]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            logs = list(pool.map(one, names))
        objects = [str(folder / f"{source}.o") for source in names]
        logs.append(_gxx(["-shared", *objects, "-o", str(folder / f"{name}.so")]))
        for path in objects:
            os.unlink(path)
        return "".join(logs)

    def belongs(source: str) -> bool:
        return source.endswith(".h") or (source in TENSOR) == tensor

    parts = _parts(way=f"simt {name}", sources=_digest(belongs))
    place, _ = cache.build(f"the {name} of compiled GPU code", parts, make)
    return ctypes.CDLL(str(place / f"{name}.so"), mode=ctypes.RTLD_GLOBAL)


def library(
    what: str, source: str, say: Callable[[str], None] = lambda _: None, *, tensor: bool = False
) -> Any:
    """(library of one translated kernel, its Build). tensor: it has `mma` instructions.

    Raises BuildError.
    """
    runtime()
    if tensor:
        runtime(tensor=True)

    def make(folder: Path) -> str:
        (folder / "kernel.cc").write_text(source)
        return _gxx(["-shared", str(folder / "kernel.cc"), "-o", str(folder / "kernel.so")])

    headers = _digest(lambda name: name.endswith(".h"))
    parts = _parts(way="simt kernel", source=source, headers=headers)
    place, build = cache.build(what, parts, make, say)
    return ctypes.CDLL(str(place / "kernel.so")), build
