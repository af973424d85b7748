"""`cpp`: a .cpp with a plain C interface, built by g++ and called through ctypes."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

from .. import cache
from ..errors import BuildError, LaunchError
from . import Here, Job, Loaded

FLAGS = ("-O3", "-march=native", "-std=c++17", "-fopenmp", "-fPIC", "-shared", "-Wall")
BUILD_SECONDS = 300
ERROR = re.compile(r"^(\S[^:\n]*:\d+:(?:\d+:)?) (?:fatal )?error: .*$", re.MULTILINE)


def here(device: str) -> Here:
    if not shutil.which(compiler()):
        return Here(reason=f"no C++ compiler: {compiler()} is not on PATH; apt install g++")
    return Here(judge="cpu", timed=True)


def compiler() -> str:
    return os.environ.get("CXX", "g++")


@lru_cache
def version() -> str:
    """The compiler's own name for itself, and the processor that `native` stands for."""
    said = subprocess.run([compiler(), "--version"], capture_output=True, text=True, timeout=30)
    return f"{said.stdout.splitlines()[0]} on {_processor()}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if not info.is_file():
        return platform.processor()
    wanted = ("model name", "flags")
    lines = [line for line in info.read_text().splitlines() if line.startswith(wanted)]
    return " ".join(sorted(set(lines)))


def load(job: Job) -> Loaded:
    """Builds the source as a shared library. Raises BuildError."""
    source = job.variant.source
    assert source is not None
    folders = [*(Path(f) for f in job.variant.include), source.parent]
    command = [compiler(), *FLAGS, *job.variant.flags, *(f"-I{f}" for f in folders)]
    parts = {
        "way": "cpp",
        "sources": cache.source_digests([source], folders),
        "command": command,
        "compiler": version(),
    }

    def make(folder: Path) -> str:
        return run([*command, str(source), "-o", str(folder / "kernel.so")])

    place, build = cache.build(job.what, parts, make, job.say)
    return Loaded(Library(place / "kernel.so", source), build)


def run(command: list[str], folder: Path | None = None) -> str:
    """Runs a compiler; what it said. Raises BuildError with its first error."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=BUILD_SECONDS, cwd=folder
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"the compiler took more than {BUILD_SECONDS} s: {command[0]}") from None
    log = " ".join(command) + "\n" + done.stdout + done.stderr
    if done.returncode != 0:
        raise BuildError(first_error(log), log)
    return log


def first_error(log: str) -> str:
    """The first line that is an error, with its source line; the very first often isn't."""
    found = ERROR.search(log)
    if not found:
        lines = [line for line in log.splitlines() if "error" in line.lower()]
        return (lines or log.splitlines() or ["the compiler said nothing"])[0].strip()
    rest = log[found.end() :].splitlines()
    line = next((text.split("|", 1)[1].strip() for text in rest[:2] if "|" in text), "")
    return found.group(0) + (f": {line}" if line else "")


TYPES: dict[str, Any] = {
    "int8_t": ctypes.c_int8,
    "int16_t": ctypes.c_int16,
    "int": ctypes.c_int,
    "int32_t": ctypes.c_int32,
    "long": ctypes.c_long,
    "int64_t": ctypes.c_int64,
    "long long": ctypes.c_longlong,
    "size_t": ctypes.c_size_t,
    "uint8_t": ctypes.c_uint8,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "unsigned": ctypes.c_uint,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "bool": ctypes.c_bool,
}


class Library:
    """`k` of a `cpp` launcher: `k.name(out, x, n)`; tensors go as pointers, numbers as declared."""

    def __init__(self, path: Path, source: Path):
        self._library = ctypes.CDLL(str(path))
        self._source = source
        self._text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source.read_text(), flags=re.DOTALL)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            function = self._library[name]
        except AttributeError:
            raise LaunchError(
                f'{self._source.name} exports no function {name!r}; declare it extern "C"'
            ) from None
        function.restype = None
        types = self._parameters(name)

        def call(*args: Any) -> None:
            if len(args) != len(types):
                raise LaunchError(f"{name} takes {len(types)} arguments, and got {len(args)}")
            given = [
                _convert(name, i, value, kind) for i, (value, kind) in enumerate(zip(args, types))
            ]
            function(*given)

        setattr(self, name, call)
        return call

    def _parameters(self, name: str) -> list[str]:
        found = re.search(rf"\b{name}\s*\(([^)]*)\)", self._text)
        if not found:
            raise LaunchError(
                f"{self._source.name} has no readable declaration of {name}(...); write it out, "
                "not through a macro, so that numbers can be converted to what it declares"
            )
        declared = [p.strip() for p in found.group(1).split(",") if p.strip() not in ("", "void")]
        return [_type(parameter) for parameter in declared]


def _type(parameter: str) -> str:
    if "*" in parameter:
        return "*"
    words = [
        w for w in parameter.replace("std::", "").split() if w not in ("const", "__restrict__")
    ]
    return " ".join(words[:-1]) if len(words) > 1 else words[0]


def _convert(function: str, index: int, value: Any, kind: str) -> Any:
    if kind == "*":
        if hasattr(value, "data_ptr"):
            if value.device.type != "cpu":
                raise LaunchError(f"{function}: argument {index} is on {value.device}, not the CPU")
            return ctypes.c_void_p(value.data_ptr())
        raise LaunchError(
            f"{function}: argument {index} is declared a pointer, and got a {type(value).__name__}"
        )
    if kind not in TYPES:
        raise LaunchError(f"{function}: argument {index} has type {kind!r}, which can't be passed")
    return TYPES[kind](number(function, index, value, kind, "float" in kind or kind == "double"))


def number(function: str, index: int, value: Any, kind: str, is_float: bool) -> Any:
    """A Python number as a declared type can hold it. Raises LaunchError if it would be lossy."""
    if not isinstance(value, (bool, int, float)):
        raise LaunchError(
            f"{function}: argument {index} is declared {kind}, and got a {type(value).__name__}"
        )
    if is_float:
        return float(value)
    if isinstance(value, float) and not value.is_integer():
        raise LaunchError(f"{function}: argument {index} is declared {kind}, and got {value}")
    made = int(value)
    if kind in TYPES and kind != "bool" and TYPES[kind](made).value != made:
        raise LaunchError(f"{function}: argument {index} is declared {kind}; {made} does not fit")
    return made
