"""NVIDIA's assembler and disassembler: where they are, which version, how to get them.

Triton's wheel brings ptxas, nvdisasm and cuobjdump; wheels of the toolkit's parts and a toolkit do.
The newest is taken: it reads what older compilers wrote, and an older one refuses newer PTX.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ...doctor.bounded import run
from ...doctor.packages import site_folders
from ...doctor.parse import tool_version
from ...doctor.search import PROGRAMS, candidates, roots
from ...errors import NotRun

SECONDS = 10.0
NAMES = {"ptxas": ("ptxas", "ptxas-blackwell")}
"""Triton has two of them."""
HOW = {part.name: part.get for part in PROGRAMS}


@dataclass(frozen=True)
class Tool:
    """A program that answered."""

    name: str
    path: Path
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def find(name: str) -> Tool:
    """The newest ptxas, nvdisasm or cuobjdump. Raises NotRun saying how to get one."""
    found = _all(name)
    if not found:
        brings = "pip install triton brings one"
        get = HOW[name].replace("python -m ", "")
        raise NotRun(f"no {name} here: {brings}, or: {get}")
    return max(found, key=lambda tool: _numbers(tool.version))


@lru_cache
def _all(name: str) -> tuple[Tool, ...]:
    places = roots(os.environ, site_folders())
    made = []
    for called in NAMES.get(name, (name,)):
        for root in candidates(called, places, os.environ):
            answer = run([root.path, "--version"], SECONDS)
            if not answer.failure:
                made.append(Tool(name, root.path, tool_version(answer.text)))
    return tuple(made)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in version.split(".") if n.isdigit())
