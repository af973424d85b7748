"""How many registers a Triton kernel takes: ptxas is asked once somebody looks at the number.

Launching needs no ptxas; occupancy formulas, as in Triton's softmax tutorial, read `kernel.n_regs`.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import triton

from ...errors import NotRun


class Registers:
    """Registers of a thread, as a number. Raises NotRun if ptxas can't say."""

    def __init__(self, ptx: str, arch: str) -> None:
        self.ptx, self.arch = ptx, arch

    @cached_property
    def value(self) -> int:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kernel.ptx"
            path.write_text(self.ptx)
            target = re.search(r"\.target\s+(\w+)", self.ptx)
            name = target.group(1) if target else self.arch
            command = [_ptxas(name), "-v", f"--gpu-name={name}", str(path), "-o", f"{path}.cubin"]
            done = subprocess.run(command, capture_output=True, text=True)
        found = re.search(r"Used (\d+) registers", done.stderr + done.stdout)
        if done.returncode or not found:
            raise NotRun(f"ptxas can't say how many registers are used: {done.stderr.strip()}")
        return int(found.group(1))

    def __repr__(self) -> str:
        return str(self.value)

    def __hash__(self) -> int:
        return hash(self.value)


def _ptxas(target: str) -> str:
    newer = getattr(triton.knobs.nvidia, "ptxas_blackwell", None)
    return str((newer if newer and target >= "sm_90" else triton.knobs.nvidia.ptxas).path)


def _of_value(name: str) -> Callable[..., Any]:
    def method(self: Registers, *others: Any) -> Any:
        plain = [o.value if isinstance(o, Registers) else o for o in others]
        return getattr(self.value, name)(*plain)

    return method


for _name in (
    *("__index__", "__int__", "__float__", "__bool__", "__format__"),
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"),
    *(
        f"__{r}{o}__"
        for r in ("", "r")
        for o in ("add", "sub", "mul", "floordiv", "truediv", "mod")
    ),
):
    setattr(Registers, _name, _of_value(_name))
