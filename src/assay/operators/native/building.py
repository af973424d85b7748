"""How the C++ module of native calls is compiled: g++, against the headers of torch alone.

Neither torch nor CUDA is imported or needed for it: what is called of CUDA is found by its address
when an operator is planned. The entry of the cache is keyed by the sources, the compiler, this
Python and this torch, whose headers decide how its tensors lie in memory.
"""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ... import cache
from ...errors import AssayError, BuildError
from ...types import Build
from ...ways import cpp

SOURCE = Path(__file__).with_name("call.cpp")
NAME = "assay_native"
FLAGS = ("-O2", "-std=c++20", "-fPIC", "-shared", "-Wall", "-DAT_PER_OPERATOR_HEADERS")
LIBRARIES = ("torch_python", "torch_cpu", "c10")


def impossible() -> str:
    """Why it can't be compiled here; empty if it can."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "this Python has no global lock, which native calls rely on"
    if platform.system() != "Linux":
        return f"native calls are for Linux, and this is {platform.system()}"
    if not shutil.which(cpp.compiler()):
        return f"no C++ compiler: {cpp.compiler()} is not on PATH; apt install g++"
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        return "no Python.h: install the headers of this Python (apt install python3-dev)"
    return ""


def build(say: Callable[[str], None]) -> Build:
    """Compiles it if it is not in the cache. Raises AssayError."""
    if why := impossible():
        raise AssayError(f"native calls can't be built: {why}")

    def make(folder: Path) -> str:
        return cpp.run([*_command(), "-o", str(folder / f"{NAME}.so"), *_linked()])

    try:
        return cache.build("native calls of operators", _parts(), make, say)[1]
    except BuildError as error:
        raise AssayError(f"native calls did not build: {error.first}") from error


def load() -> tuple[Any, str]:
    """The module if it was built, else None and why not."""
    if why := impossible():
        return None, why
    place = cache.kept(_parts())
    if place is None:
        return None, "it is not built: assay.operators.native.build(), or assay tune"
    import torch  # noqa: F401 - its libraries are those that the module was linked with

    spec = importlib.util.spec_from_file_location(NAME, place / f"{NAME}.so")
    assert spec is not None
    assert spec.loader is not None
    try:
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
    except ImportError as error:
        return None, f"what was built does not load: {error}"
    return made, ""


def _torch() -> Path:
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise AssayError("native calls need torch: pip install torch")
    return Path(spec.submodule_search_locations[0])


def _command() -> list[str]:
    include = _torch() / "include"
    folders = [include, include / "torch" / "csrc" / "api" / "include"]
    headers = [f"-I{folder}" for folder in (*folders, sysconfig.get_path("include"))]
    return [cpp.compiler(), *FLAGS, *headers, str(SOURCE)]


def _linked() -> list[str]:
    return [f"-L{_torch() / 'lib'}", *(f"-l{name}" for name in LIBRARIES)]


def _parts() -> dict[str, Any]:
    return {
        "way": "native",
        "sources": cache.source_digests([SOURCE]),
        "flags": [*FLAGS, *LIBRARIES],
        "compiler": cpp.version(),
        "torch": (_torch() / "version.py").read_text(),
        "python": sys.version,
    }
