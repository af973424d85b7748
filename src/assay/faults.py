"""An exception out of a kernel, as a verdict word and a sentence. Nothing is swallowed."""

from __future__ import annotations

import re
import traceback

from .errors import AssayError, BuildError, LaunchError, NotRun, NotSupported

MEMORY = re.compile(r"out of memory|can't allocate memory|CUDA_ERROR_OUT_OF_MEMORY", re.IGNORECASE)
CRASH = re.compile(
    r"illegal memory access|ILLEGAL_ADDRESS|misaligned address|MISALIGNED_ADDRESS"
    r"|LAUNCH_FAILED|unspecified launch failure|device-side assert|ILLEGAL_INSTRUCTION",
    re.IGNORECASE,
)
LAUNCH = re.compile(
    r"CUDA_ERROR_INVALID_VALUE|invalid configuration|too many resources requested"
    r"|LAUNCH_OUT_OF_RESOURCES|OutOfResources|out of resource|invalid argument",
    re.IGNORECASE,
)

LIBRARIES = re.compile(r"site-packages|lib/python|/assay/(?!ops/)|<")


def word_of(error: BaseException) -> tuple[str, str]:
    """The verdict word for an exception, and what to say. `not run` for a NotRun.

    AssayError, the user's mistake, is not a kernel's fault and is raised again.
    """
    if isinstance(error, AssayError):
        raise error
    if isinstance(error, NotRun):
        return "not run", str(error)
    if isinstance(error, BuildError):
        return "did not build", error.first
    if isinstance(error, LaunchError):
        return "did not launch", str(error)
    if isinstance(error, NotSupported):
        return "not supported", str(error)
    text = _first_line(error)
    where = _where(error)
    name = type(error).__name__
    if isinstance(error, MemoryError) or name == "OutOfMemoryError" or MEMORY.search(str(error)):
        return "out of memory", text
    if CRASH.search(str(error)):
        return "crashed", f"{text}{where}"
    if name == "OutOfResources" or LAUNCH.search(str(error)):
        return "did not launch", f"{name}: {text}"
    if name == "CompilationError" and "triton" in type(error).__module__:
        return "did not build", f"{text}{where}"
    return "crashed", f"{name}: {text}{where}"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else "(no message)"


def _where(error: BaseException) -> str:
    """` at file:line` of the innermost frame outside of libraries."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        f
        for f in frames
        if not re.search(r"site-packages|lib/python|/assay/(?!ops/)|<", f.filename)
    ]
    return f" at {own[-1].filename}:{own[-1].lineno}" if own else ""


def poisons_process(word: str) -> bool:
    """Whether this may have cost a process its CUDA context, so that it judges nothing more."""
    return word in ("crashed", "did not launch", "out of memory")
