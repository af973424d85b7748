"""`cpp`: a .cpp with a plain C interface, built by g++ and called through ctypes."""

from __future__ import annotations

import ctypes
import math
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
    said = done.stdout + done.stderr
    log = " ".join(command) + "\n" + said
    if done.returncode != 0:
        raise BuildError(first_error(said), log)
    return log


def first_error(log: str) -> str:
    """The first line that is an error, with its source line; the very first often isn't."""
    found = ERROR.search(log)
    if not found:
        # A linker says what is missing first, and "error" last.
        telling = ("undefined reference", "multiple definition", "cannot find", "error")
        lines = [line for word in telling for line in log.splitlines() if word in line.lower()]
        return (lines or log.splitlines() or ["the compiler said nothing"])[0].strip()
    rest = log[found.end() :].splitlines()
    line = next((text.split("|", 1)[1].strip() for text in rest[:2] if "|" in text), "")
    return found.group(0) + (f": {line}" if line else "")


TYPES: dict[str, Any] = {
    "char": ctypes.c_byte,
    "signed char": ctypes.c_byte,
    "int8_t": ctypes.c_int8,
    "short": ctypes.c_short,
    "int16_t": ctypes.c_int16,
    "int": ctypes.c_int,
    "int32_t": ctypes.c_int32,
    "long": ctypes.c_long,
    "long int": ctypes.c_long,
    "int64_t": ctypes.c_int64,
    "long long": ctypes.c_longlong,
    "long long int": ctypes.c_longlong,
    "ptrdiff_t": ctypes.c_ssize_t,
    "unsigned char": ctypes.c_ubyte,
    "uint8_t": ctypes.c_uint8,
    "unsigned short": ctypes.c_ushort,
    "uint16_t": ctypes.c_uint16,
    "unsigned": ctypes.c_uint,
    "unsigned int": ctypes.c_uint,
    "uint32_t": ctypes.c_uint32,
    "unsigned long": ctypes.c_ulong,
    "unsigned long long": ctypes.c_ulonglong,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "bool": ctypes.c_bool,
}


class Library:
    """`k` of a `cpp` launcher: `k.name(out, x, n)`; tensors go as pointers, numbers as declared."""

    def __init__(self, path: Path, source: Path):
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:  # a symbol that nothing defines
            raise BuildError(f"{source.name} does not load: {error}", str(error)) from None
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


QUALIFIERS = {"const", "volatile", "restrict", "__restrict__", "__restrict"}
WORDS = {"signed", "unsigned", "char", "short", "int", "long", "float", "double", "bool", "void"}


def _type(parameter: str) -> str:
    """`float*` of `const float* __restrict__ x`, `int` of `int n`, `float*` of `float y[]`."""
    text = re.sub(r"\bstd::|=.*", " ", parameter)
    pointer = "*" if "*" in text or "[" in text else ""
    words = re.sub(r"[*]|\[.*", " ", text).split()
    words = [w for w in words if w not in QUALIFIERS]
    if len(words) > 1 and words[-1] not in WORDS:
        words.pop()  # the parameter's name
    return " ".join(words) + pointer


def _convert(function: str, index: int, value: Any, kind: str) -> Any:
    if kind.endswith("*"):
        if not hasattr(value, "data_ptr"):
            raise LaunchError(
                f"{function}: argument {index} is declared {kind}, and got a {type(value).__name__}"
            )
        if value.device.type != "cpu":
            raise LaunchError(f"{function}: argument {index} is on {value.device}, not the CPU")
        _check_elements(function, index, value, kind[:-1])
        return ctypes.c_void_p(value.data_ptr())
    if kind not in TYPES:
        raise LaunchError(f"{function}: argument {index} has type {kind!r}, which can't be passed")
    return TYPES[kind](number(function, index, value, kind, kind in FLOATS))


FLOATS = ("float", "double", "f32", "f64")


def _check_elements(function: str, index: int, tensor: Any, element: str) -> None:
    """Refuses a float64 tensor for a float*: the function would read halves of numbers."""
    if element not in TYPES:
        return  # void*, or a type of the source's own
    size = tensor.element_size() // (2 if tensor.is_complex() else 1)
    is_float = tensor.is_floating_point() or tensor.is_complex()
    if size != ctypes.sizeof(TYPES[element]) or (element in FLOATS and not is_float):
        given = str(tensor.dtype).removeprefix("torch.")
        raise LaunchError(f"{function}: argument {index} is declared {element}*, and got {given}")


def number(function: str, index: int, value: Any, kind: str, is_float: bool) -> Any:
    """A Python or NumPy number as a declared type can hold it.

    Raises LaunchError if it would be lossy; a float is rounded to the declared precision.
    """
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        value = value.item()
    where = f"{function}: argument {index} is declared {kind}"
    if not isinstance(value, (bool, int, float)):
        raise LaunchError(f"{where}, and got a {type(value).__name__}")
    if is_float:
        single = kind in ("float", "f32")
        made = _as_float(value, single)
        if isinstance(value, int) and made != value:
            raise LaunchError(f"{where}, which can't hold {value} exactly")
        if math.isinf(made) and not math.isinf(value):
            raise LaunchError(f"{where}; {value} does not fit")
        return made if isinstance(value, int) else float(value)
    if isinstance(value, float) and not value.is_integer():
        raise LaunchError(f"{where}, and got {value}")
    whole = int(value)
    fits = (
        whole in (0, 1)
        if kind == "bool"
        else kind not in TYPES or TYPES[kind](whole).value == whole
    )
    if not fits:
        raise LaunchError(f"{where}; {whole} does not fit")
    return whole


def _as_float(value: float, single: bool) -> float:
    try:
        return float(ctypes.c_float(value).value) if single else float(value)
    except OverflowError:
        return math.inf
