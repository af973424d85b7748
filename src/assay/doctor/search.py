"""Finds the parts of a CUDA toolkit: where to look, in which order, and what was there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from assay.doctor.bounded import run
from assay.doctor.facts import Probe
from assay.doctor.parse import define, tool_version

_SECONDS = 8.0


class Root(NamedTuple):
    """A folder that may hold bin/, include/ and lib/, and why it is looked at."""

    origin: str
    path: Path


class Part(NamedTuple):
    """A program of the toolkit: what it is for, and how to get it."""

    name: str
    purpose: str
    get: str


PIP = "python -m pip install"
PROGRAMS = (
    Part("nvcc", "the extension way", f"{PIP} nvidia-cuda-nvcc"),
    Part("ptxas", "registers and spills of PTX", f"{PIP} nvidia-cuda-nvcc"),
    Part("nvdisasm", "reading SASS", f"{PIP} nvidia-cuda-nvdisasm"),
    Part("cuobjdump", "reading binaries", f"{PIP} nvidia-cuda-cuobjdump"),
    Part("ncu", "hardware counters", "part of the CUDA toolkit, or NVIDIA Nsight Compute"),
    Part("nsys", "timelines", "part of the CUDA toolkit, or NVIDIA Nsight Systems"),
    Part("compute-sanitizer", "memory and race checks", "part of the CUDA toolkit"),
    Part("cuda-gdb", "stepping through kernels", "part of the CUDA toolkit"),
    Part("nvprof", "timelines of old GPUs", "replaced by nsys and ncu"),
)
OBSOLETE = ("nvprof",)
HEADERS = (
    ("cuda_runtime.h", "nvidia-cuda-runtime"),
    ("cuda_fp16.h", "nvidia-cuda-runtime"),
    ("cuda/std/version", "nvidia-cuda-cccl"),
)
LIBRARIES = ("libcublas", "libcublasLt", "libcudnn", "libcufft", "libcurand", "libnccl")


def roots(environ: Mapping[str, str], site_folders: Iterable[Path]) -> tuple[Root, ...]:
    """Every place to look, the user's own word first. Folders that do not exist are left out."""
    listed = [
        *(
            Root(name, Path(environ[name]))
            for name in ("CUDA_HOME", "CUDA_PATH")
            if environ.get(name)
        ),
        *_path_root(environ),
        *_wheels(site_folders),
        *(Root("conda", Path(prefix)) for prefix in (environ.get("CONDA_PREFIX"),) if prefix),
        Root("/usr/local/cuda", Path("/usr/local/cuda")),
        *(Root(str(path), path) for path in _newest(Path("/usr/local").glob("cuda-*"))),
        *(Root("Nsight", path) for path in _newest(Path("/opt/nvidia").glob("nsight-*/*"))),
        Root("system", Path("/usr")),
    ]
    return tuple(root for root in listed if root.path.is_dir())


def _path_root(environ: Mapping[str, str]) -> Iterator[Root]:
    """The toolkit behind the nvcc on PATH; a wrapper script in a bin/ of its own has none."""
    nvcc = shutil.which("nvcc", path=environ.get("PATH", ""))
    if nvcc and (Path(nvcc).resolve().parents[1] / "include" / "cuda_runtime.h").is_file():
        yield Root("PATH", Path(nvcc).resolve().parents[1])


def _wheels(site_folders: Iterable[Path]) -> Iterator[Root]:
    for site in site_folders:
        for path in sorted((site / "nvidia").glob("*/")):
            yield Root("wheel", path)
        yield Root("Triton's wheel", site / "triton" / "backends" / "nvidia")


def _newest(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.name, reverse=True)


def candidates(name: str, places: Iterable[Root], environ: Mapping[str, str]) -> Iterator[Root]:
    """Every distinct file that could be this program: CUDA_HOME, then PATH, then the rest."""
    on_path = shutil.which(name, path=environ.get("PATH", ""))
    seen: set[Path] = set()
    ours = list(places)
    explicit = [root for root in ours if root.origin in ("CUDA_HOME", "CUDA_PATH")]
    order = [
        *_inside(name, explicit),
        *([Root("PATH", Path(on_path))] if on_path else []),
        *_inside(name, [root for root in ours if root not in explicit]),
    ]
    for found in order:
        real = found.path.resolve()
        if real not in seen:
            seen.add(real)
            yield found


def _inside(name: str, places: Iterable[Root]) -> Iterator[Root]:
    for origin, path in places:
        for folder in ("bin", ".", "target-linux-x64", "compute-sanitizer"):
            file = path / folder / name
            if file.is_file():
                yield Root(origin, file)


def program(part: Part, places: Iterable[Root], environ: Mapping[str, str]) -> Probe:
    """The first candidate that answers `--version`; each that does not is named."""
    found = list(candidates(part.name, places, environ))
    failures = []
    for at, (origin, file) in enumerate(found):
        ran = run([file, "--version"], _SECONDS)
        if ran.failure:
            failures.append(f"{file}: {ran.failure}")
            continue
        return Probe(
            name=part.name,
            state="found",
            version=tool_version(ran.text),
            path=str(file),
            origin=origin,
            detail="; ".join(failures),
            others=tuple(str(other.path) for other in found[at + 1 :]),
            architectures=_architectures(part.name, file),
        )
    if failures:
        return Probe(name=part.name, state="failed", path=str(found[0].path), detail=failures[0])
    return Probe(name=part.name, state="missing", detail=f"for {part.purpose}: {part.get}")


def _architectures(name: str, file: Path) -> tuple[str, ...]:
    """What nvcc says it can build for, as compute capabilities; () for other programs."""
    if name != "nvcc":
        return ()
    listed = run([file, "--list-gpu-code"], _SECONDS).out.split()
    digits = [word[3:] for word in listed if word.startswith("sm_") and word[3:].isdigit()]
    return tuple(f"{int(word) // 10}.{int(word) % 10}" for word in digits)


def header(name: str, package: str, places: Iterable[Root]) -> Probe:
    """The first of the include folders that has this header, with the version written in it."""
    found = [
        Root(origin, folder / name)
        for origin, path in places
        for folder in (path / "include", path / "include" / "cccl")
        if (folder / name).is_file()
    ]
    shown = "CCCL headers" if name.startswith("cuda/") else name
    if not found:
        need = f"for the cuda way: {PIP} {package}"
        return Probe(name=shown, state="missing", detail=need)
    origin, file = found[0]
    return Probe(
        name=shown,
        state="found",
        version=_header_version(file),
        path=str(file),
        origin=origin,
        others=tuple(str(other.path) for other in found[1:]),
    )


def _header_version(file: Path) -> str:
    """CUDART_VERSION counts 13050 for 13.5; CCCL_VERSION counts 3005000 for 3.5.0."""
    beside = {"version": file.parent / "__cccl" / "version.h"}
    text_file = beside.get(file.name, file.parent / "cuda_runtime_api.h")
    if not text_file.is_file():
        return ""
    text = text_file.read_text(encoding="utf-8", errors="replace")
    if cccl := define(text, "CCCL_VERSION"):
        return f"{cccl // 1_000_000}.{cccl // 1000 % 1000}.{cccl % 1000}"
    cudart = define(text, "CUDART_VERSION")
    return f"{cudart // 1000}.{cudart % 1000 // 10}" if cudart else ""


def libraries(stem: str, places: Iterable[Root], environ: Mapping[str, str]) -> list[Root]:
    """Every distinct shared library `stem`.so.*, the longest name (its full version) first."""
    listed = list(places)
    paths = [Path(entry) for entry in environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if entry]
    folders = [Root("LD_LIBRARY_PATH", path) for path in paths]
    for origin, path in listed:
        folders += [Root(origin, path / sub) for sub in ("lib64", "lib")]
        folders += [Root(origin, sub) for sub in path.glob("targets/*-linux/lib")]
        folders += [Root(origin, sub) for sub in path.glob("lib/*-linux-gnu")]
    found: dict[Path, Root] = {}
    for origin, folder in folders:
        for file in sorted(folder.glob(f"{stem}.so.*"), key=lambda path: -len(path.name)):
            found.setdefault(file.resolve(), Root(origin, file))
    return list(found.values())


def library(stem: str, places: Iterable[Root], environ: Mapping[str, str]) -> Probe:
    """A vendor library by its file: not loaded, since that can start CUDA."""
    found = libraries(stem, places, environ)
    if not found:
        return Probe(name=stem, state="missing", detail="for the library way")
    origin, file = found[0]
    return Probe(
        name=stem,
        state="found",
        version=file.resolve().name.partition(".so.")[2],
        path=str(file),
        origin=origin,
        others=tuple(str(other.path) for other in found[1:]),
    )
