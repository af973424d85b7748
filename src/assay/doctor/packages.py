"""Finds Python packages and their versions without importing any of them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from pathlib import Path

from assay.doctor.facts import Probe
from assay.doctor.parse import torch_build

# (distribution, module to import, what it is for)
PACKAGES = (
    ("torch", "torch", "everything"),
    ("triton", "triton", "the triton way"),
    ("numba", "numba", "the numba way"),
    ("numba-cuda", "numba_cuda", "the numba way"),
    ("cuda-core", "cuda.core", "the cuda way"),
    ("cuda-bindings", "cuda.bindings", "the cuda way"),
    ("cuda-pathfinder", "cuda.pathfinder", "the cuda way"),
    ("nvidia-ml-py", "pynvml", "clocks beside timings"),
    ("numpy", "numpy", "statistics"),
    ("msgspec", "msgspec", "rows"),
)


def site_folders() -> tuple[Path, ...]:
    """The folders on sys.path that packages are installed in, in order."""
    names = ("site-packages", "dist-packages")
    return tuple(dict.fromkeys(Path(entry) for entry in sys.path if Path(entry).name in names))


def folder(module: str) -> Path | None:
    """Where a module's file or package lies, or None; only its top package is looked up.

    Raises ImportError if something on the import path forbids it.
    """
    top, _, rest = module.partition(".")
    spec = importlib.util.find_spec(top)  # finds a top module without running it
    if spec is None:
        return None
    places = [Path(place) for place in spec.submodule_search_locations or ()]
    if not rest:
        return places[0] if places else Path(spec.origin or "").parent
    return next((place / rest for place in places if (place / rest).exists()), None)


def package(distribution: str, module: str, purpose: str) -> Probe:
    """Version from the metadata, place from the import system."""
    try:
        version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        version = ""
    try:
        where, reason = folder(module), "its metadata is there, its files are not"
    except (ImportError, ValueError) as error:
        where, reason = None, str(error)
    if where is None and version:
        return Probe(name=distribution, state="failed", version=version, detail=reason)
    if where is None:
        return Probe(name=distribution, state="missing", detail=f"for {purpose}")
    return Probe(
        name=distribution, state="found", version=version, path=str(where), origin="sys.path"
    )


def torch_facts(torch: Probe) -> tuple[str, str]:
    """(CUDA version, ROCm version) that this torch was built with, read from its version.py."""
    if torch.state != "found":
        return "", ""
    return torch_build((Path(torch.path) / "version.py").read_text(encoding="utf-8"))
