"""Runs the compilers that building kernels needs, each on the smallest source."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from assay.doctor.bounded import Ran, ask, last_line, run
from assay.doctor.facts import NVCC_HOST, TRITON_KERNEL, Probe
from assay.doctor.parse import host_limit, tool_version
from assay.doctor.search import Root, libraries

_SECONDS = 10.0


class Answer(msgspec.Struct, frozen=True):
    """What child.py says of NVRTC, and child_triton.py of Triton."""

    ptx: str
    version: str = ""
    architectures: tuple[str, ...] = ()


def host_compiler(environ: Mapping[str, str]) -> Probe:
    """The C++ compiler that extensions and `cpp` would use: $CXX, g++, c++, clang++."""
    names = [environ["CXX"]] if environ.get("CXX") else ["g++", "c++", "clang++"]
    path = next((found for name in names if (found := _which(name, environ))), None)
    if path is None:
        return Probe(name="C++ compiler", state="missing", detail=f"looked for {', '.join(names)}")
    ran = compile_text("int main() { return 0; }\n", [path, "-std=c++17"])
    return Probe(
        name="C++ compiler",
        state="failed" if ran.failure else "found",
        version=_compiler_version(path),
        path=path,
        origin="CXX" if environ.get("CXX") else "PATH",
        detail=ran.failure or "compiles C++17",
    )


def c_compiler(environ: Mapping[str, str]) -> Probe:
    """The C compiler that Triton builds its launchers with: $CC, gcc or clang."""
    names = [environ["CC"]] if environ.get("CC") else ["gcc", "clang"]
    path = next((found for name in names if (found := _which(name, environ))), None)
    if path is None:
        return Probe(name="C compiler", state="missing", detail="for launching Triton kernels")
    ran = compile_text("int main(void) { return 0; }\n", [path], suffix=".c")
    return Probe(
        name="C compiler",
        state="failed" if ran.failure else "found",
        version=_compiler_version(path),
        path=path,
        origin="CC" if environ.get("CC") else "PATH",
        detail=ran.failure,
    )


def openmp(compiler: Probe) -> Probe:
    """Whether the host compiler links an OpenMP program, as torch.compile's C++ needs."""
    if compiler.state != "found":
        return Probe(name="OpenMP", state="missing", detail="there is no C++ compiler")
    source = "#include <omp.h>\nint main() { return omp_get_max_threads() < 1; }\n"
    ran = compile_text(source, [compiler.path, "-fopenmp"])
    return Probe(name="OpenMP", state="failed" if ran.failure else "found", detail=ran.failure)


def python_header() -> Probe:
    """Python.h of the running interpreter: Triton's launchers and extensions include it."""
    path = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return Probe(name="Python.h", state="found" if path.is_file() else "missing", path=str(path))


def ninja(environ: Mapping[str, str]) -> Probe:
    """The ninja program, run: on PATH, or else beside this Python, where torch cannot see it."""
    on_path = _which("ninja", environ)
    beside = Path(sys.executable).parent / "ninja"
    path = on_path or (str(beside) if beside.is_file() else None)
    if path is None:
        return Probe(name="ninja", state="missing", detail="for the extension way")
    ran = run([path, "--version"], _SECONDS)
    return Probe(
        name="ninja",
        state="failed" if ran.failure else "found",
        version=tool_version(ran.out),
        path=path,
        origin="PATH" if on_path else "beside Python, not on PATH",
        detail=ran.failure,
    )


def nvcc_host(nvcc: Probe, environ: Mapping[str, str]) -> Probe:
    """Compiles an empty .cu: nvcc refuses a host compiler that is newer than it knows.

    `others` offers a compiler that it does take; none is put in place silently.
    """
    if nvcc.state != "found":
        return Probe(name=NVCC_HOST, state="missing", detail="there is no nvcc that runs")
    ran = compile_text("\n", [nvcc.path], suffix=".cu", only_compile=True)
    if not ran.failure:
        return Probe(name=NVCC_HOST, state="found", path=nvcc.path, detail="an empty .cu compiles")
    offered = _other_hosts(nvcc.path, environ) if host_limit(ran.text) else ()
    return Probe(name=NVCC_HOST, state="failed", path=nvcc.path, detail=ran.failure, others=offered)


def _other_hosts(nvcc: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The newest g++-N on PATH that nvcc takes, of the three newest."""
    folders = [Path(entry) for entry in environ.get("PATH", "").split(os.pathsep) if entry]
    found = {path.name: path for folder in folders for path in folder.glob("g++-[0-9]*")}
    numbered = [path for name, path in found.items() if name[4:].isdigit()]
    for path in sorted(numbered, key=lambda path: -int(path.name[4:]))[:3]:
        command = [nvcc, "-ccbin", str(path)]
        if not compile_text("\n", command, suffix=".cu", only_compile=True).failure:
            return (str(path),)
    return ()


def nvrtc(places: Sequence[Root], environ: Mapping[str, str]) -> tuple[Probe, str]:
    """The first libnvrtc that compiles an empty kernel, and the PTX version it writes."""
    failure = Probe(
        name="NVRTC", state="missing", detail="for the cuda way: python -m pip install "
        "nvidia-cuda-nvrtc"
    )  # fmt: skip
    found = libraries("libnvrtc", places, environ)
    for at, (origin, file) in enumerate(found):
        ran = ask("nvrtc", file, seconds=_SECONDS)
        if not ran.failure:
            answer = msgspec.json.decode(last_line(ran.out), type=Answer)
            others = tuple(str(other.path) for other in found[at + 1 :])
            probe = Probe(
                name="NVRTC", state="found", version=answer.version, path=str(file),
                origin=origin, others=others, architectures=answer.architectures,
                detail=f"compiles an empty kernel, writes PTX {answer.ptx}",
            )  # fmt: skip
            return probe, answer.ptx
        if failure.state == "missing":
            failure = Probe(name="NVRTC", state="failed", path=str(file), detail=ran.failure)
    return failure, ""


def triton_kernel(triton: Probe, gpu: bool) -> Probe:
    """Compiles the smallest Triton kernel, in a cache of its own so that nothing is reused."""
    if triton.state != "found":
        return Probe(name=TRITON_KERNEL, state="missing", detail="triton is not installed")
    script = Path(__file__).with_name("child_triton.py")
    with tempfile.TemporaryDirectory(prefix="assay-doctor-") as scratch:
        # TRITON_INTERPRET would replace the compiler that is asked about.
        env = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
        env["TRITON_CACHE_DIR"] = scratch
        where = str(Path(triton.path).parent)
        command = [sys.executable, "-I", str(script), where, "gpu" if gpu else "cpu"]
        ran = run(command, 2 * _SECONDS, env=env, cwd=scratch)
    if ran.failure:
        return Probe(
            name=TRITON_KERNEL, state="failed", detail=triton_failure(ran.err) or ran.failure
        )
    answer = msgspec.json.decode(last_line(ran.out), type=Answer)
    launched = ", launcher built" if gpu else ""
    detail = f"the smallest compiles to sm_90, PTX {answer.ptx}{launched}"
    return Probe(name=TRITON_KERNEL, state="found", detail=detail)


def triton_failure(text: str) -> str:
    """What Triton lacked, out of its traceback: the last line, or a missing file named before."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wanted = ("Python.h: No such file", "Failed to find C compiler", "libcuda.so", "ptxas fatal")
    named = (line for line in lines for sign in wanted if sign in line)
    return next(named, lines[-1] if lines else "")


def compile_text(
    source: str, command: Sequence[str], *, suffix: str = ".cpp", only_compile: bool = False
) -> Ran:
    """Compiles `source` in a temporary folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="assay-doctor-") as scratch:
        file = Path(scratch) / f"empty{suffix}"
        file.write_text(source, encoding="utf-8")
        flags = ["-c"] if only_compile else []
        return run([*command, *flags, file, "-o", Path(scratch) / "out"], _SECONDS, cwd=scratch)


def _which(name: str, environ: Mapping[str, str]) -> str | None:
    return shutil.which(name, path=environ.get("PATH", ""))


def _compiler_version(path: str) -> str:
    said = run([path, "--version"], _SECONDS).out.splitlines()
    return said[0] if said else ""
