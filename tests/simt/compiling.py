"""CUDA C++ to PTX by NVRTC, one compilation for all the kernels of a file and its flags."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

ARCH = "compute_80"
FLAGS = ("-std=c++17", "-lineinfo", "-default-device")


@lru_cache
def headers() -> tuple[str, ...]:
    """CUDA's own headers, and CCCL's (CUB, libcu++) among them."""
    from cuda import pathfinder

    found = (pathfinder.find_nvidia_header_directory(name) for name in ("cudart", "cccl"))
    return tuple(str(folder) for folder in found if folder)


@lru_cache(maxsize=128)
def compiled(
    source: Path, kernels: tuple[str, ...], flags: tuple[str, ...] = ()
) -> tuple[str, dict[str, str]]:
    """(PTX, kernel as C++ writes it -> its entry). Kept below ASSAY_CACHE, by what went in.

    Raises RuntimeError with the compiler's log.
    """
    text = source.read_text()
    version = importlib.metadata.version("nvidia-cuda-nvrtc")
    folders = [Path(flag[2:]) for flag in flags if flag.startswith("-I")]
    beside = [header.read_text() for folder in folders for header in sorted(folder.glob("*.cuh"))]
    parts = json.dumps([text, beside, str(source), kernels, flags, FLAGS, ARCH, version])
    cache = Path(os.environ.get("ASSAY_CACHE") or tempfile.gettempdir())
    place = cache / "corpus" / f"{hashlib.sha256(parts.encode()).hexdigest()[:32]}.json"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        made = place.with_suffix(f".{os.getpid()}")
        made.write_text(json.dumps(_nvrtc(text, source, kernels, flags)))
        made.replace(place)
    ptx, names = json.loads(place.read_text())
    return ptx, names


def _nvrtc(
    text: str, source: Path, kernels: tuple[str, ...], flags: tuple[str, ...]
) -> tuple[str, dict[str, str]]:
    from cuda.bindings import nvrtc

    def ask(function: Any, *args: Any) -> Any:
        status, *values = function(*args)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise RuntimeError(f"{source.name}: {function.__name__}: {status.name}\n{log()}")
        return values[0] if values else None

    def log() -> str:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        buffer = b" " * size
        nvrtc.nvrtcGetProgramLog(program, buffer)
        return buffer.decode(errors="replace").rstrip(" \0\n")

    _, program = nvrtc.nvrtcCreateProgram(text.encode(), str(source).encode(), 0, [], [])
    for name in kernels:
        ask(nvrtc.nvrtcAddNameExpression, program, name.encode())
    options = [f"--gpu-architecture={ARCH}", *FLAGS, *flags, *(f"-I{h}" for h in headers())]
    ask(nvrtc.nvrtcCompileProgram, program, len(options), [o.encode() for o in options])
    buffer = b" " * ask(nvrtc.nvrtcGetPTXSize, program)
    ask(nvrtc.nvrtcGetPTX, program, buffer)
    names = {k: ask(nvrtc.nvrtcGetLoweredName, program, k.encode()).decode() for k in kernels}
    nvrtc.nvrtcDestroyProgram(program)
    return buffer.rstrip(b" \0").decode(), names
