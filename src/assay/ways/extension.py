"""`extension`: C++ (and CUDA) with torch headers, through load_inline behind Assay's own cache.

The pybind11 binding is generated here, for the functions that the launcher uses; it includes slim
headers, since torch/extension.h alone costs most of a build. Source, binding, ninja file and log
stay in the cache entry to be read.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import cache
from ..errors import AssayError, BuildError
from ..types import Build
from . import Here, Job, Loaded, cpp

FLAGS = ("-O3", "-std=c++20")
OPENMP = "-fopenmp"  # at::parallel_for is serial in a file compiled without it; nvcc refuses it
TENSOR_HEADERS = "#include <torch/csrc/utils/pybind.h>\n"
PLAIN_HEADERS = "#include <pybind11/pybind11.h>\n#include <pybind11/stl.h>\n"


def headers(source: str) -> str:
    """What the binding includes: torch's converters only where the source knows tensors."""
    return TENSOR_HEADERS if re.search(r"\b(at|torch|c10)::|ATen|torch/", source) else PLAIN_HEADERS


def here(device: str) -> Here:
    if not shutil.which(cpp.compiler()):
        return Here(reason=f"no C++ compiler: {cpp.compiler()} is not on PATH; apt install g++")
    if ninja() is None:
        return Here(reason="ninja is missing: pip install ninja")
    if device.startswith("cuda") and not shutil.which("nvcc") and not os.environ.get("CUDA_HOME"):
        return Here(reason="no nvcc: install the CUDA toolkit, or set CUDA_HOME")
    return Here(judge=device, timed=True)


def ninja() -> str | None:
    """The ninja program: on PATH, or beside this Python (a virtual environment not activated)."""
    beside = Path(sys.executable).parent / "ninja"
    return shutil.which("ninja") or (str(beside) if beside.is_file() else None)


class Names:
    """Stands for the module in a dry run: notes which functions the launcher calls."""

    def __init__(self) -> None:
        self.used: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self.used:
            self.used.append(name)
        return lambda *args: None


def load(job: Job) -> Loaded:
    """Builds and imports the module. Raises BuildError."""
    names = Names()
    job.dry_run(names)
    source = job.variant.source
    assert source is not None
    cuda = source.with_suffix(".cu") if job.device.startswith("cuda") else None
    if cuda is not None and not cuda.is_file():
        cuda = None
    sources = [source, *([cuda] if cuda else [])]
    folders = [source.parent, *(Path(f) for f in job.variant.include)]
    flags = [*FLAGS, *job.variant.flags, *(["-DWITH_CUDA"] if cuda else [])]
    name = re.sub(r"\W", "_", f"assay_{job.op.name}_{source.stem}")
    module, build = _built(
        job.what, name, sources, sorted(names.used), flags, folders, job.arch, job.say
    )
    return Loaded(module, build)


def load_source(
    source: str,
    functions: str | Sequence[str],
    *,
    flags: Sequence[str] = (),
    verbose: bool = False,
) -> ModuleType:
    """C++ text as an imported module, built once for the same text, flags and compiler.

    source: C++ that includes what it uses (`<torch/extension.h>` for tensors costs most of a
        build; `<ATen/core/Tensor.h>` little). pybind11 is included already.
    functions: names of those to be called from Python.
    flags: for the compiler, beside `-O3 -std=c++20 -fopenmp`.
    verbose: prints what the builder and the compiler said, also where the build is an old one.

    Raises AssayError if there is no compiler, or with the compiler's first error.
    """
    names = [functions] if isinstance(functions, str) else list(functions)
    wrong = [name for name in names if not name.isidentifier()]
    if wrong or not names:
        raise AssayError(
            f"load_inline(functions={functions!r}): give the names of functions in the source, "
            "e.g. ['hello_world']"
        )
    if reason := here("cpu").reason:
        raise AssayError(f"load_inline: {reason}")
    given = [flags] if isinstance(flags, str) else list(flags)
    path = cache.keep_source("inline", source, ".cpp")
    name = f"assay_{path.stem.replace('-', '_')}"
    what = f"inline {' '.join(names)}"
    try:
        module, build = _built(
            what, name, [path], sorted(names), [*FLAGS, *given], [path.parent], "", print
        )
    except BuildError as error:
        if verbose:
            print(error.log)
        raise AssayError(f"load_inline: the source did not build: {error.first}") from error
    if verbose:
        print(build.log)
    return module


def _built(
    what: str,
    name: str,
    sources: list[Path],
    functions: list[str],
    flags: list[str],
    folders: list[Path],
    arch: str,
    say: Callable[[str], None],
) -> tuple[ModuleType, Build]:
    """The module of these sources, from the cache or built. Raises BuildError."""
    import torch

    parts = {
        "way": "extension",
        "sources": cache.source_digests(sources, folders),
        "functions": functions,
        "flags": [*flags, OPENMP],
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": sys.version,
        "compiler": cpp.version(),
        "arch": arch if len(sources) > 1 else "",
    }

    def make(folder: Path) -> str:
        return _compile(folder, name, sources, functions, flags, folders, arch)

    place, build = cache.build(what, parts, make, say)
    # torch numbers a second build of a name in one process, and the module is called after that.
    library = next(place.glob(f"{name}*.so"))
    return _import(library.stem, library), build


def binding(functions: list[str]) -> str:
    """The pybind11 module that makes the functions callable from Python."""
    lines = [f'  m.def("{name}", &{name});' for name in functions]
    return "\n".join(["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {", *lines, "}", ""])


def _compile(
    folder: Path,
    name: str,
    sources: list[Path],
    functions: list[str],
    flags: list[str],
    folders: list[Path],
    arch: str,
) -> str:
    from torch.utils.cpp_extension import load_inline

    tool = ninja()
    if tool:
        os.environ["PATH"] = f"{Path(tool).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    if len(sources) > 1:
        os.environ["TORCH_CUDA_ARCH_LIST"] = _arch_list(arch)
    text = sources[0].read_text()
    main = f'{headers(text)}#line 1 "{sources[0]}"\n{text}\n{binding(functions)}'
    cuda = [f'#line 1 "{s}"\n{s.read_text()}' for s in sources[1:]]
    said = io.StringIO()
    with _captured(folder / "build.log") as log:
        try:
            load_inline(
                name,
                [main],
                cuda_sources=cuda or None,
                no_implicit_headers=True,
                extra_cflags=[*flags, OPENMP],
                extra_cuda_cflags=[*flags, "-lineinfo"] if cuda else None,
                extra_include_paths=[str(f) for f in folders],
                build_directory=str(folder),
                verbose=True,
            )
        except (RuntimeError, ImportError, OSError) as error:
            text = log() + str(error)
            raise BuildError(cpp.first_error(text), text) from None
    said.write(log())
    return said.getvalue()


@contextlib.contextmanager
def _captured(path: Path) -> Any:
    """Sends what this process and its compilers print to a file; yields a reader of it."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with open(path, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield lambda: (sys.stdout.flush(), sys.stderr.flush(), path.read_text())[2]
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        os.close(kept[0])
        os.close(kept[1])


def _arch_list(arch: str) -> str:
    """sm_90a as torch writes it: 9.0a."""
    digits = re.sub(r"[^\d]", "", arch)
    letter = "a" if arch.endswith("a") else ""
    return f"{digits[:-1]}.{digits[-1]}{letter}"


def _import(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BuildError(f"{path} is no module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
