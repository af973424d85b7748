"""Nsight Compute and Nsight Systems: their commands for one variant on one case, and ncu's run.

The program is `assay.commands.once --profiled`: it warms up, then calls once between
cudaProfilerStart and cudaProfilerStop, so that launches are told by their place, never by name.
Clocks are left as they are (`--clock-control none`), as they are when Assay times; caches are
flushed before each kernel and each replay (`--cache-control all`), which is a cold L2. No other
CUPTI client runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import NotRun

FIX = {
    "ncu": "it is part of Nsight Compute and of the CUDA toolkit; put it on PATH or set CUDA_HOME",
    "nsys": "it is part of Nsight Systems and of the CUDA toolkit; put it on PATH or set CUDA_HOME",
}
SECONDS = 600.0
MOST_LAUNCHES = 64
"""Of one call that ncu records: each is replayed some tens of times."""
CACHE, CLOCK = "all", "none"


@dataclass(frozen=True)
class Program:
    """What is run below a profiler."""

    target: str
    variant: str
    case: str = ""

    @property
    def command(self) -> list[str]:
        case = ["--case", self.case] if self.case else []
        here = [sys.executable, "-m", "assay.commands.once", self.target, "-k", self.variant]
        return [*here, *case, "--profiled"]


def find(name: str, environ: Mapping[str, str] = os.environ) -> str:
    """A tool on PATH, else in the toolkit. Raises NotRun saying where it comes from."""
    homes = [environ[n] for n in ("CUDA_HOME", "CUDA_PATH") if environ.get(n)]
    folders = [str(Path(home) / "bin") for home in [*homes, "/usr/local/cuda"]]
    path = os.pathsep.join([environ.get("PATH", ""), *folders])
    found = shutil.which(name, path=path)
    if not found:
        raise NotRun(f"{name} is not found: {FIX[name]}")
    return found


def ncu_command(
    ncu: str,
    program: Program,
    report: Path,
    sections: str = "full",
    launches: int = MOST_LAUNCHES,
    skip: int = 0,
) -> list[str]:
    """The command that records launches of one call, from `skip` on. report: without its suffix."""
    return [
        ncu,
        *("--profile-from-start", "off"),
        *("--launch-skip", str(skip), "--launch-count", str(launches)),
        *("--clock-control", CLOCK, "--cache-control", CACHE),
        *("--set", sections),
        *("--target-processes", "application-only"),
        *("--force-overwrite", "--export", str(report)),
        *program.command,
    ]


def ncu_page(ncu: str, report: Path) -> list[str]:
    """The command that prints a report as text, which needs no package to be read."""
    return [ncu, "--import", str(report.with_suffix(".ncu-rep")), "--page", "details"]


def nsys_command(nsys: str, program: Program, report: Path) -> list[str]:
    """The command that records a timeline of one call with its statistics."""
    return [
        *(nsys, "profile", "--trace=cuda,nvtx,osrt", "--sample=none", "--stats=true"),
        *("--capture-range=cudaProfilerApi", "--capture-range-end=stop"),
        *("--force-overwrite=true", f"--output={report}"),
        *program.command,
    ]


def nsys_export(nsys: str, report: Path) -> list[str]:
    """The command that makes of it what `assay profile --read` takes."""
    return [nsys, "export", "--type=sqlite", f"{report}.nsys-rep"]


def ncu(ncu_path: str, program: Program, report: Path, place: int | None = None) -> Path:
    """Records a call, and returns the text page beside the report, which is kept for ncu-ui.

    place: of the one launch that is recorded; None: all of them.

    Raises NotRun with the reason and what allows it where counters are forbidden, or ncu fails.
    """
    skip, launches = (0, MOST_LAUNCHES) if place is None else (place, 1)
    made = _run(ncu_command(ncu_path, program, report, skip=skip, launches=launches))
    kept = report.with_suffix(".ncu-rep")
    if refused(made.text):
        raise NotRun(forbidden())
    if made.code or not kept.is_file():
        log = report.with_suffix(".log")
        log.write_text(made.text)
        raise NotRun(
            f"ncu ended with {made.code}, its last words: {made.last}; all of them are in {log}. A "
            "GPU's counters serve one profiler at a time: is there another one on it?"
        )
    page = _run(ncu_page(ncu_path, report))
    if page.code:
        raise NotRun(f"ncu could not print {kept}: {page.last}")
    text = report.with_suffix(".txt")
    text.write_text(page.text)
    return text


@dataclass(frozen=True)
class Ran:
    """How a program ended and what it said."""

    code: int
    text: str

    @property
    def last(self) -> str:
        """Its last lines that say anything."""
        said = [line.strip() for line in self.text.splitlines() if line.strip()]
        return " / ".join(said[-3:]) or "none"


def _run(command: Sequence[str]) -> Ran:
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except OSError as error:
        raise NotRun(f"{command[0]} can't be started: {error}") from None
    except subprocess.TimeoutExpired:
        raise NotRun(f"{command[0]} did not end within {SECONDS:.0f} s") from None
    return Ran(done.returncode, done.stdout)


def refused(text: str) -> bool:
    """Whether the driver keeps the counters from this user."""
    return "ERR_NVGPUCTRPERM" in text


def forbidden() -> str:
    """The reason, and what allows it on this machine."""
    from ...doctor import fixes
    from ...doctor.host import host

    found = fixes.denied("ERR_NVGPUCTRPERM", host(os.environ))
    assert found is not None
    return f"{found.what}; to allow it: {found.fix}"
