"""`cuda`: a .cu of device code, compiled by NVRTC for a named architecture, launched by cuda.core.

The launcher is first run on meta tensors against a recorder: that yields the kernels' names, their
grids and the types of their arguments, and needs no GPU. NVRTC then gives a cubin and the PTX;
ptxas' report gives registers, spills and shared memory, the PTX gives the parameters' types.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from .. import cache
from ..errors import BuildError
from ..types import Compiled, Counters
from . import NO_GPU, Here, Job, Loaded, watches
from .launch import (
    Launch,
    Recorder,
    arguments,
    check_geometry,
    check_shared,
    configured_as,
    type_of,
)

INCLUDE = Path(__file__).parent.parent / "include"
FLAGS = ("-std=c++17", "-lineinfo", "-default-device")
DEBUG = "-G"
"""Device code that cuda-gdb can step through: unoptimised, with every variable in memory."""
ERROR = re.compile(r"^(.*?)\((\d+)\): (?:catastrophic )?error:? ?(.*)$", re.MULTILINE)
PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(?:\.ptr\s+(?:\.\w+\s+)?(?:\.align\s+\d+\s+)?)?"
    r"(\w+?)_param_(\d+)(?:\[(\d+)\])?"
)
"""From sm_100 on NVRTC marks pointers: `.param .u64 .ptr .align 1 k_param_0`."""


def here(device: str) -> Here:
    # `cuda` alone is a namespace, which any one of its packages makes.
    for module, package in (
        ("cuda.bindings", "cuda-bindings"),
        ("cuda.pathfinder", "cuda-pathfinder"),
    ):
        if not _found(module):
            return Here(reason=f"{package} is not installed: pip install 'assay[cuda]'")
    if device.startswith("cuda"):
        if not _found("cuda.core"):
            return Here(reason="cuda-core is not installed: pip install 'assay[cuda]'")
        return Here(judge=device, timed=True)
    if watches():
        return Here(judge="simt", reason=NO_GPU, compiles=True)
    return Here(reason="no GPU", compiles=True)


def _found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # nothing below `cuda` at all
        return False


def load(job: Job) -> Loaded:
    """Compiles the kernels that the launcher uses. Raises BuildError or LaunchError."""
    recorder = Recorder(job.architecture)
    job.dry_run(recorder)
    for launch in recorder.launches:
        check_geometry(launch)
    names = sorted({launch.name for launch in recorder.launches})
    source = job.variant.source
    assert source is not None
    built = compile_source(source, names, job)
    for launch in recorder.launches:
        facts = built.facts[launch.name]
        check_shared(launch, facts.shared_bytes, facts.arch)
    kernels = tuple(_with_geometry(built.facts[name], recorder.launches, name) for name in names)
    handle: Any = Recorder(job.architecture)
    if job.device.startswith("cuda"):
        handle = module(built, job)
    elif job.watch is not None:
        handle = Watched(built, job)
    return Loaded(handle, built.build, Counters(kernels=kernels))


def module(built: Built, job: Job) -> Any:
    """What launches the kernels of a source on a GPU."""
    from .cuda_module import Module

    def more(name: str) -> Built:  # chosen by the data, so not seen in the dry run
        assert job.variant.source is not None
        return compile_source(job.variant.source, [name], job)

    return Module(built, job.device, job.architecture, more)


def _with_geometry(facts: Compiled, launches: Iterable[Launch], name: str) -> Compiled:
    import msgspec

    first = next(launch for launch in launches if launch.name == name)
    return msgspec.structs.replace(
        facts, grid=first.grid, block=first.block, dynamic_shared_bytes=first.shared
    )


@dataclass(frozen=True)
class Built:
    """A compiled source: cubin, and for each kernel its lowered name, parameters and facts."""

    cubin: Path
    ptx: Path
    lowered: dict[str, str]
    parameters: dict[str, list[list[Any]]]
    facts: dict[str, Compiled]
    build: Any


def compile_source(source: Path, names: list[str], job: Job, arch: str = "") -> Built:
    """A cubin with these kernels, from the cache or by NVRTC. Raises BuildError."""
    folders = [source.parent, *(Path(f) for f in job.variant.include), INCLUDE, *toolkit_headers()]
    arch = arch or job.architecture
    # Code for the debugger carries its lines already.
    own = [f for f in FLAGS if f != "-lineinfo" or DEBUG not in job.variant.flags]
    flags = [*own, *job.variant.flags]
    parts = {
        "way": "cuda",
        "sources": cache.source_digests(
            [source], [f for f in folders if f not in toolkit_headers()]
        ),
        "names": names,
        "flags": flags,
        "include": [str(f) for f in folders],
        "arch": arch,
        "nvrtc": nvrtc_version(),
    }

    def make(folder: Path) -> str:
        return _nvrtc(folder, source, names, arch, flags, folders)

    place, build = cache.build(job.what, parts, make, job.say)
    facts = json.loads((place / "facts.json").read_text())
    report = ptxas_report(build.log)
    return Built(
        cubin=place / "kernel.cubin",
        ptx=place / "kernel.ptx",
        lowered=facts["lowered"],
        parameters=facts["parameters"],
        facts={n: _named(report.get(low), n, arch) for n, low in facts["lowered"].items()},
        build=build,
    )


@lru_cache
def nvrtc_version() -> str:
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    try:
        package = importlib.metadata.version("nvidia-cuda-nvrtc")
    except importlib.metadata.PackageNotFoundError:
        package = "system"
    return f"{major}.{minor} ({package})"


@lru_cache
def toolkit_headers() -> tuple[Path, ...]:
    """CUDA's own headers, of the toolkit that NVRTC is part of where that is known."""
    from cuda import pathfinder

    found = pathfinder.find_nvidia_header_directory("cudart")
    return (Path(found),) if found else ()


def _nvrtc(
    folder: Path,
    source: Path,
    names: list[str],
    arch: str,
    flags: list[str],
    folders: list[Path],
) -> str:
    """Fills a cache entry: kernel.cubin, kernel.ptx, facts.json. Returns the compiler's log."""
    from cuda.bindings import nvrtc

    def ask(function: Any, *args: Any) -> Any:
        status, *values = function(*args)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise BuildError(f"{function.__name__}: {status.name}", _log())
        return values[0] if values else None

    def text(size: Any, get: Any) -> bytes:
        buffer = b" " * ask(size, program)
        ask(get, program, buffer)
        return buffer

    def _log() -> str:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        buffer = b" " * size
        nvrtc.nvrtcGetProgramLog(program, buffer)
        return buffer.decode(errors="replace").rstrip(" \0\n")

    code = source.read_text()
    _, program = nvrtc.nvrtcCreateProgram(code.encode(), str(source).encode(), 0, [], [])
    for name in names:
        ask(nvrtc.nvrtcAddNameExpression, program, name.encode())
    options = [
        f"--gpu-architecture={arch}",
        "--ptxas-options=-v",
        *flags,
        *(f"-I{f}" for f in folders),
    ]
    (status,) = nvrtc.nvrtcCompileProgram(
        program, len(options), [option.encode() for option in options]
    )
    log = _log()
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise BuildError(first_error(log, source, options), log)
    lowered = {n: ask(nvrtc.nvrtcGetLoweredName, program, n.encode()).decode() for n in names}
    (folder / "kernel.cubin").write_bytes(text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN))
    ptx = text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX).rstrip(b" \0").decode()
    (folder / "kernel.ptx").write_text(ptx)
    parameters = {n: _parameters(ptx, low) for n, low in lowered.items()}
    facts = {"lowered": lowered, "parameters": parameters}
    (folder / "facts.json").write_text(json.dumps(facts))
    nvrtc.nvrtcDestroyProgram(program)
    return f"nvrtc {' '.join(options)} {source}\n{log}"


def first_error(log: str, source: Path, options: list[str]) -> str:
    """NVRTC's first error as `file:line:col: error: text: source line`."""
    found = ERROR.search(log)
    if not found:
        lines = [line for line in log.splitlines() if line.strip()]
        lines = [line for line in lines if re.search(r"\berror\b", line)] or lines  # ptxas' own
        return (lines or ["NVRTC said nothing; options: " + " ".join(options)])[0].strip()
    file, line, message = found.group(1), int(found.group(2)), found.group(3).strip()
    rest = log[found.end() :].splitlines()
    caret = next((text.index("^") for text in rest[:4] if text.strip() == "^"), None)
    path = Path(file) if Path(file).is_file() else source
    lines = path.read_text().splitlines()
    shown = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    # NVRTC indents the source line by two, so the caret's column is two more than the line's.
    column = f":{caret - 1}" if caret is not None else ""
    return f"{file}:{line}{column}: error: {message}: {shown}"


def _parameters(ptx: str, lowered: str) -> list[list[Any]]:
    """[PTX type, bytes] of each parameter of an entry."""
    entry = re.search(rf"\.entry\s+{re.escape(lowered)}\s*\(([^)]*)\)", ptx)
    if not entry:
        return []
    return [
        [kind, int(size) if size else 0] for kind, _, _, size in PARAMETER.findall(entry.group(1))
    ]


REPORT = re.compile(r"Compiling entry function '([\w$]+)' for '(\w+)'")
NUMBERS = {
    "registers": re.compile(r"Used (\d+) registers"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "spill_store_bytes": re.compile(r"(\d+) bytes spill stores"),
    "spill_load_bytes": re.compile(r"(\d+) bytes spill loads"),
}


def ptxas_report(log: str) -> dict[str, Compiled]:
    """What `ptxas -v` reports of each kernel, by the name that it has in the PTX."""
    found = list(REPORT.finditer(log))
    reports = {}
    for index, match in enumerate(found):
        end = found[index + 1].start() if index + 1 < len(found) else len(log)
        body = log[match.end() : end]
        numbers = {name: pattern.search(body) for name, pattern in NUMBERS.items()}
        values = {name: int(m.group(1)) if m else None for name, m in numbers.items()}
        if values["registers"] is not None and values["shared_bytes"] is None:
            values["shared_bytes"] = 0  # ptxas leaves it out where there is none
        reports[match.group(1)] = Compiled(
            name=match.group(1), arch=match.group(2), **cast(dict[str, Any], values)
        )
    return reports


def _named(facts: Compiled | None, name: str, arch: str) -> Compiled:
    import msgspec

    if facts is None:
        return Compiled(name=name, arch=arch)
    renamed: Compiled = msgspec.structs.replace(facts, name=name)
    return renamed


class Watched:
    """`k` on the CPU: the same compiled kernels, every access watched.

    Run as compiled for the architecture of the build; where that has instructions that can't be
    run, compiled anew for the one that can.
    """

    def __init__(self, built: Built, job: Job):
        self._job = job
        self.type = type_of
        self.arch = job.architecture
        self._built = {self.arch: built}

    def __getitem__(self, name: str) -> Any:
        def configured(*, grid: Any, block: Any, shared: int = 0, early: bool = False) -> Any:
            launch = configured_as(name, grid, block, shared, early)
            check_geometry(launch)
            return lambda *args: self._launch(launch, args)

        return configured

    def _launch(self, launch: Launch, args: tuple[Any, ...]) -> None:
        from ..simt import DEFAULT_ARCH, NotCheckable

        try:
            self._run(self._of(launch.name, self.arch), launch, args)
        except NotCheckable:
            if self.arch == DEFAULT_ARCH:
                raise
            self._run(self._of(launch.name, DEFAULT_ARCH), launch, args)

    def _of(self, name: str, arch: str) -> Built:
        """The source compiled for an architecture, with this kernel in it."""
        if name not in self._built.get(arch, EMPTY).lowered:
            source = self._job.variant.source
            assert source is not None
            self._built[arch] = compile_source(source, [name], self._job, arch)
        return self._built[arch]

    def _run(self, built: Built, launch: Launch, args: tuple[Any, ...]) -> None:
        from ..simt.adapters import Compiled

        lowered = built.lowered[launch.name]
        parameters = built.parameters[launch.name]
        # By what it is meant for, which may have more than what stands in for it here.
        check_shared(launch, built.facts[launch.name].shared_bytes, self.arch)
        compiled = Compiled(lowered, built.ptx.read_text(), built.facts[launch.name].arch, "cuda")
        passed = [*arguments(launch.name, args, parameters, "cpu")]
        self._job.watch.run(compiled, launch.grid, launch.block, passed, launch.shared)


EMPTY = Built(Path(), Path(), {}, {}, {}, None)
