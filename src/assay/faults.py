"""An exception out of a kernel, as a verdict word and a sentence. Nothing is swallowed."""

from __future__ import annotations

import re
import sysconfig
import traceback
from pathlib import Path

from .errors import AssayError, BuildError, LaunchError, NotRun, NotSupported

MEMORY = re.compile(r"out of memory|can't allocate memory|CUDA_ERROR_OUT_OF_MEMORY", re.IGNORECASE)
CRASH = re.compile(
    r"illegal memory access|ILLEGAL_ADDRESS|misaligned address|MISALIGNED_ADDRESS"
    r"|LAUNCH_FAILED|unspecified launch failure|device-side assert|ILLEGAL_INSTRUCTION",
    re.IGNORECASE,
)
LAUNCH = re.compile(
    r"CUDA_ERROR_INVALID_VALUE|invalid configuration|too many resources requested"
    r"|LAUNCH_OUT_OF_RESOURCES|OutOfResources|out of resource|(CUDA|HIP)\b.*invalid argument",
    re.IGNORECASE,
)
REFUSED = re.compile(r"refuses to launch it: CUDA_ERROR_(\w+)")
NOT_LAUNCHED = (
    *("INVALID_VALUE", "INVALID_CONTEXT", "INVALID_HANDLE", "INVALID_IMAGE", "INVALID_SOURCE"),
    *("LAUNCH_OUT_OF_RESOURCES", "COOPERATIVE_LAUNCH_TOO_LARGE", "INVALID_CLUSTER_SIZE"),
    *("NO_BINARY_FOR_GPU", "NOT_SUPPORTED", "NOT_PERMITTED", "NOT_INITIALIZED", "NOT_FOUND"),
)
"""What the driver says of a launch itself (CUDA driver API, CUresult)."""
POWER = re.compile(r"arange's range must be a power of 2")
ANSI = re.compile(r"\x1b\[[0-9;]*m")
MOST_TEXT = 400
HERE = Path(__file__).parent
LIBRARIES = [Path(p) for n, p in sysconfig.get_paths().items() if n not in ("data", "scripts")]


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
        return _of_launch(str(error))
    if isinstance(error, NotSupported):
        return "not supported", str(error)
    whole, text, where = _text(error), _first_line(error), _where(error)
    name = type(error).__name__
    if isinstance(error, MemoryError) or name == "OutOfMemoryError" or MEMORY.search(whole):
        return "out of memory", text
    if CRASH.search(whole):
        return "crashed", f"{text}{where}"
    if name == "OutOfResources" or LAUNCH.search(whole):
        return "did not launch", f"{name}: {text}"
    if POWER.search(whole):
        said = "the range of tl.arange must be a power of two: round the block up, mask the rest"
        return "did not build", f"{said}{where}"
    if name == "CompilationError" and "triton" in type(error).__module__:
        return "did not build", f"{_last_line(error)}{where}"
    if any(c.__name__ == "NumbaError" for c in type(error).__mro__):
        return "did not build", f"{_reason(error)}{where}"
    return "crashed", told(error)


def _of_launch(text: str) -> tuple[str, str]:
    """What can't be launched; or, where the driver says anything else, what came of the kernel in
    front of it."""
    said = REFUSED.search(text)
    if said is None or said.group(1) in NOT_LAUNCHED:
        return "did not launch", text
    return "out of memory" if MEMORY.search(text) else "crashed", text


def told(error: BaseException) -> str:
    """An exception of the user's own code in one line: kind, message, file and line."""
    return f"{type(error).__name__}: {_first_line(error)}{_where(error)}"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception's text is the user's code too
        return ""


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in _text(error).splitlines() if line.strip()]
    return lines[0][:MOST_TEXT] if lines else "(no message)"


def _last_line(error: BaseException) -> str:
    """Triton shows the kernel first, up to the line that is wrong, and then says what is wrong."""
    lines = [line.strip() for line in _text(error).splitlines() if line.strip()]
    return lines[-1][:MOST_TEXT] if lines else "(no message)"


def _reason(error: BaseException) -> str:
    """Numba says first in which step it failed, and then why."""
    lines = [ANSI.sub("", line).strip() for line in _text(error).splitlines()]
    said = [line for line in lines if line and not line.startswith("Failed in ")]
    return f"{type(error).__name__}: {said[0][:MOST_TEXT] if said else '(no message)'}"


def _where(error: BaseException) -> str:
    """` at file:line` of the innermost frame outside of libraries."""
    own = [f for f in traceback.extract_tb(error.__traceback__) if _is_users(f.filename)]
    return f" at {own[-1].filename}:{own[-1].lineno}" if own else ""


def _is_users(file: str) -> bool:
    path = Path(file)
    if file.startswith("<") or (HERE in path.parents and HERE / "ops" not in path.parents):
        return False
    return not any(folder in path.parents for folder in LIBRARIES)


def poisons_process(word: str) -> bool:
    """Whether this may have cost a process its CUDA context, so that it judges nothing more."""
    return word in ("crashed", "did not launch", "out of memory")
