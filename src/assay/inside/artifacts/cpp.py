"""`cpp`: the compiler's log, and the library's machine code where objdump is there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ... import cache, single
from ...doctor.bounded import run
from ...errors import NotRun
from .collecting import Found, Pick
from .model import Part

SECONDS = 60.0
OF_OTHERS = re.compile(
    r"^(_init|_fini|(de)?register_tm_clones|frame_dummy|__do_global\w+|PyInit_\w+)"
    r"|^(\w[\w ]*&? )?(pybind11|std|torch|at|c10|__gnu_cxx)::|^(pybind11_|Py[A-Z]|_GLOBAL__)"
)
"""Functions of the linker, the binding and headers."""
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
NO_OBJDUMP = "no objdump here: apt install binutils"


def collect(pick: Pick, arch: str) -> Found:
    """Raises BuildError with the compiler's first error."""
    one = pick()
    placed = single.place(one, "cpu")
    kernel = single.built(placed, "cpu", arch)
    if not kernel.build.key:
        raise NotRun(f"{one.label} names no source: nothing was compiled")
    library = next(cache.place_of(kernel.build.key).glob("*.so"))
    found = Found(one, placed, arch, texts={"log": kernel.build.log})
    found.parts.append(part(library, library.stem))
    return found


def part(library: Path, name: str) -> Part:
    """Machine code of the functions that the source defines."""
    try:
        return Part(name=name, texts={"asm": disassembled(library)})
    except NotRun as reason:
        return Part(name=name, absent={"asm": str(reason)})


def disassembled(library: Path) -> str:
    """What objdump prints of a library's functions, others' code left out. Raises NotRun."""
    program = shutil.which("objdump")
    if program is None:
        raise NotRun(NO_OBJDUMP)
    command = [program, "-d", "-C", "--no-show-raw-insn", "-j", ".text", str(library)]
    done = run(command, SECONDS)
    if done.failure:
        raise NotRun(f"objdump: {done.failure}")
    kept, keep = [], False
    for line in done.out.splitlines():
        if begins := FUNCTION.match(line):
            keep = not OF_OTHERS.search(begins.group(1))
        if keep:
            kept.append(line)
    return "\n".join(kept) + "\n"
