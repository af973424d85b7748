"""Runs one program under a deadline, its descendants included."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

_CHILD = Path(__file__).with_name("child.py")


class Ran(Struct, frozen=True):
    """What a program did. `failure` is empty if it ended by itself with code 0."""

    out: str
    err: str
    failure: str

    @property
    def text(self) -> str:
        """Both streams, for messages that tools print on either."""
        return self.out + self.err


def run(
    command: Sequence[str | Path],
    seconds: float,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
) -> Ran:
    """Runs `command` for at most `seconds`; a program that cannot be started is a `failure` too."""
    try:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if env is None else dict(env),
            cwd=cwd,
            start_new_session=True,  # so that a deadline ends what it started as well
        )
    except OSError as error:
        return Ran("", "", f"could not be started: {error.strerror or error}")
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return _kill(process, seconds)
    failure = "" if process.returncode == 0 else _ending(process.returncode, err or out)
    return Ran(_text(out), _text(err), failure)


def _kill(process: subprocess.Popen[bytes], seconds: float) -> Ran:
    if not hasattr(os, "killpg"):
        process.kill()  # Windows has no groups of this kind
        return Ran("", "", f"no answer within {seconds:g} s")
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()  # the group went away between the deadline and here
    try:
        out, err = process.communicate(timeout=1)
    except subprocess.TimeoutExpired:
        out = err = b""  # stuck in the kernel, as a hung GPU driver does: not waited for
    return Ran(_text(out), _text(err), f"no answer within {seconds:g} s")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _ending(code: int, said: bytes) -> str:
    lines = [line.strip() for line in _text(said).splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    # A compiler's first error is the cause; a Python traceback has it in its last line.
    errors = [line for line in lines if "error" in line.lower() and "Traceback" not in lines[0]]
    reason = errors[0] if errors else last
    how = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
    return f"{how}: {reason}" if reason else how


def ask(what: str, *arguments: str | Path, seconds: float, cwd: str | Path | None = None) -> Ran:
    """Runs child.py, the only place where a GPU library is loaded, in a process of its own.

    `-I` keeps the current folder and this package's file names out of the child's imports.
    """
    return run([sys.executable, "-I", _CHILD, what, *arguments], seconds, cwd=cwd)


def last_line(text: str) -> str:
    """The child's answer: libraries may print lines of their own before it."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
