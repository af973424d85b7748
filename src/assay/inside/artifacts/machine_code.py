"""From PTX to machine code and from that to SASS, with what ptxas reports of each kernel."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ...doctor.bounded import run
from ...errors import NotRun
from ...types import Compiled
from ...ways.cuda import ptxas_report
from ...ways.targets import architecture
from . import sass, tools

SECONDS = 120.0


@dataclass(frozen=True)
class Assembled:
    """Machine code with the report of the ptxas that made it."""

    cubin: bytes
    reports: dict[str, Compiled]
    """By the kernel's name in the PTX."""
    by: str
    log: str


def assemble(ptx: str, arch: str, flags: tuple[str, ...] = ("-lineinfo",)) -> Assembled:
    """A cubin of PTX for `sm_90`. Raises NotRun if there is no ptxas, or it refuses."""
    tool = tools.find("ptxas")
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        given = ["-v", *flags, f"--gpu-name={arch}", "-o", str(made), str(source)]
        done = run([tool.path, *given], SECONDS)
        if done.failure:
            said = ERROR.search(done.text)
            why = said.group(1).strip() if said else done.failure
            raise NotRun(f"{tool} refuses it for {arch}: {why}")
        cubin = made.read_bytes()
    return Assembled(cubin, ptxas_report(done.text), str(tool), done.text)


ERROR = re.compile(r"(?:fatal|error)\s*:\s*(.*)")
RESOURCES = re.compile(r"Function (\S+?):\s+(REG:.*)")

RESERVED, FROM = 1024, 90
"""Bytes of shared memory of each block that are the system's (CUDA C++ Programming Guide, compute
capability 8.x), and from which architecture on a cubin counts them: seen with CUDA 13.5, in kernels
that use shared memory."""


def resources(cubin: bytes) -> dict[str, Compiled]:
    """What a cubin itself says its kernels take, by cuobjdump: registers, stack, shared memory.

    Shared memory is without RESERVED, as ptxas reports it. It does not say what of the stack are
    spills. Raises NotRun if there is no cuobjdump.
    """
    tool = tools.find("cuobjdump")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        done = run([tool.path, "--dump-resource-usage", str(path)], SECONDS)
    if done.failure:
        raise NotRun(f"{tool} can't read it: {done.failure}")
    found, reserved = {}, RESERVED if int(architecture(cubin)[3:]) >= FROM else 0
    for name, said in RESOURCES.findall(done.out):
        numbers = dict(part.split(":") for part in said.split() if part.count(":") == 1)
        found[name] = Compiled(
            name=name,
            arch="",
            registers=int(numbers["REG"]),
            stack_bytes=int(numbers["STACK"]),
            shared_bytes=max(0, int(numbers["SHARED"]) - reserved),
        )
    return found


def disassemble(cubin: bytes) -> dict[str, str]:
    """SASS of each kernel and function of a cubin, with lines of source where it has them.

    Raises NotRun if there is no nvdisasm, or it can't read it.
    """
    tool = tools.find("nvdisasm")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        done = run([tool.path, "-c", "-gi", str(path)], SECONDS)
        if done.failure:  # lines of inlined functions are of newer formats than some can read
            done = run([tool.path, "-c", str(path)], SECONDS)
    if done.failure:
        raise NotRun(f"{tool} can't read it: {done.failure}")
    return sass.functions(done.out)
