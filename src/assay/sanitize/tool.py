"""One run of compute-sanitizer on a job: in a process group of its own, under a deadline."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from . import report
from .job import DONE, SanitizeJob

NAME = "compute-sanitizer"
FIX = "it is part of the CUDA toolkit; put it on PATH or set CUDA_HOME"
PLACES = ("bin", "compute-sanitizer")
MOST_PRINTED = "100"
PADDING = "1024"
"""Bytes behind each allocation that belong to nobody: else the next one may begin there, and
memcheck allows what any allocation holds."""
OWN = {
    "memcheck": ("--report-api-errors", "no", "--padding", PADDING),
    "racecheck": ("--racecheck-report", "all"),
    "initcheck": (),
    "synccheck": (),
}
ENVIRONMENT = {
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",  # every tensor an allocation, whose ends are known
    "ASSAY_CHILD": "1",
}
TICK = 0.05


def find(environ: Mapping[str, str] = os.environ) -> str:
    """The program: on PATH, else in the toolkit; empty if there is none."""
    homes = [environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if environ.get(name)]
    folders = [Path(home) / place for home in [*homes, "/usr/local/cuda"] for place in PLACES]
    path = os.pathsep.join([environ.get("PATH", ""), *map(str, folders)])
    return shutil.which(NAME, path=path) or ""


def command(program: str, tool: str, log: Path, job: Path) -> list[str]:
    """The command line. The report goes to a file: what the kernel prints can't be mixed in."""
    given = ["--tool", tool, "--log-file", str(log), "--show-backtrace", "no"]
    given += ["--print-limit", MOST_PRINTED, *OWN[tool]]
    return [program, *given, sys.executable, "-m", "assay.sanitize.once", str(job)]


def run(
    program: str,
    tool: str,
    job: SanitizeJob,
    folder: Path,
    seconds: float,
    stopped: Callable[[], bool] = lambda: False,
) -> report.Report:
    """What a tool says of a job. The whole process group is ended before this returns."""
    place, log = folder / "job.json", folder / f"{tool}.log"
    done, printed = folder / DONE, folder / f"{tool}.out"
    done.unlink(missing_ok=True)
    place.write_bytes(msgspec.json.encode(job))
    with printed.open("wb") as out:
        try:
            process = subprocess.Popen(
                command(program, tool, log, place),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,
            )
        except OSError as error:
            return report.Report(tool, problem=f"{tool}: {program} can't be started: {error}")
        try:
            why = _waited(process, seconds, stopped)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    text = log.read_text(errors="replace") if log.is_file() else ""
    return _told(tool, text, why, done, printed, process.returncode)


def _waited(process: subprocess.Popen[bytes], seconds: float, stopped: Callable[[], bool]) -> str:
    """Empty, or why the run was not let to its end."""
    end = time.monotonic() + seconds
    while process.poll() is None:
        if stopped():
            return "interrupted"
        if time.monotonic() > end:
            return f"no answer after {seconds:.0f} s; it was ended (--deadline gives it longer)"
        time.sleep(TICK)
    return ""


def _told(tool: str, text: str, why: str, done: Path, printed: Path, code: int) -> report.Report:
    """The report; what it found counts even where the run did not come to its end."""
    if not text.strip() and not why:
        tail = printed.read_text(errors="replace").strip().splitlines()[-1:]
        last = f"; it printed: {tail[0][:300]}" if tail else ""
        return report.Report(tool, problem=f"{tool} wrote no report (exit code {code}){last}")
    found = report.read(tool, text)
    if why:
        return report.Report(tool, found.found, found.excluded, f"{tool}: {why}")
    if found.found or found.problem:
        return found
    ended = msgspec.json.decode(done.read_bytes()) if done.is_file() else {}
    if not ended:
        problem = f"{tool}: the call did not come to its end (exit code {code})"
    elif ended["word"]:
        problem = f"{tool}: the call failed there: {ended['word']}: {ended['reason']}"
    else:
        return found
    return report.Report(tool, found.found, found.excluded, problem)
