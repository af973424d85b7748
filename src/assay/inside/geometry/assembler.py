"""What ptxas says that a kernel takes: registers, static shared memory, barriers, spills.

NVRTC's log holds the same report. PTX is assembled by the ptxas that Triton brings, or one in PATH.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ... import hardware
from ...errors import NotRun

ENTRY = re.compile(r"Compiling entry function '([\w$]+)' for '(\w+)'")
NUMBERS = {
    "registers": r"Used (\d+) registers",
    "static_shared_bytes": r"(\d+) bytes smem",
    "barriers": r"used (\d+) barriers",
    "stack_bytes": r"(\d+) bytes stack frame",
    "spill_store_bytes": r"(\d+) bytes spill stores",
    "spill_load_bytes": r"(\d+) bytes spill loads",
}
BLACKWELL = 100


@dataclass(frozen=True)
class Taken:
    """Of one kernel. Bytes of shared memory are a block's, of stack and spills a thread's."""

    name: str
    arch: str
    registers: int
    static_shared_bytes: int = 0
    barriers: int = 0
    stack_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0


def report(log: str) -> dict[str, Taken]:
    """The kernels of a log of `ptxas -v` by their names in the PTX; what it leaves out is 0."""
    found = list(ENTRY.finditer(log))
    made = {}
    for one, end in zip(found, [*(m.start() for m in found[1:]), len(log)]):
        body = log[one.end() : end]
        numbers = {
            name: int(match.group(1))
            for name, pattern in NUMBERS.items()
            if (match := re.search(pattern, body))
        }
        if "registers" in numbers:
            made[one.group(1)] = Taken(one.group(1), one.group(2), **numbers)
    return made


def assembled(ptx: str, name: str, arch: str) -> Taken:
    """What an entry of a PTX text takes on an architecture. Raises NotRun if ptxas can't say.

    PTX for an older architecture is taken too: then this is what a driver makes of it there.
    """
    target = re.search(r"^\.target\s+(\w+)", ptx, re.MULTILINE)
    wanted = target.group(1) if target and target.group(1).rstrip("af") == arch else arch
    failed = []
    for ptxas in assemblers(arch):
        done = _run(ptxas, ptx, wanted)
        said = report(done.stdout + done.stderr)
        if not done.returncode and name in said:
            return said[name]
        failed.append(f"{ptxas}: {(done.stderr or done.stdout).strip()[:200] or 'no report'}")
    why = "; ".join(failed) or "there is no ptxas: pip install 'assay[triton]'"
    raise NotRun(f"registers of {name} on {arch}: {why}")


def assemblers(arch: str) -> list[str]:
    """Programs that can assemble for an architecture, the one that Triton would take first."""
    folder = _folder_of_triton()
    names = ["ptxas", "ptxas-blackwell"]
    newest_first = hardware.capability(arch) >= BLACKWELL
    bundled = [folder / name for name in (names[::-1] if newest_first else names)]
    found = [str(path) for path in bundled if path.is_file()]
    in_path = shutil.which("ptxas")
    return [*found, *([in_path] if in_path else [])]


def _folder_of_triton() -> Path:
    spec = importlib.util.find_spec("triton")  # its place alone: importing it takes a second
    if spec is None or spec.origin is None:
        return Path("/nowhere")
    return Path(spec.origin).parent / "backends" / "nvidia" / "bin"


def _run(ptxas: str, ptx: str, arch: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(ptx)
        command = [ptxas, "-v", f"--gpu-name={arch}", str(path), "-o", f"{path}.cubin"]
        return subprocess.run(command, capture_output=True, text=True)
