"""`compiled`: graph, program and kernels that Inductor makes of the reference for a GPU."""

from __future__ import annotations

import re

from ... import single
from ...errors import AssayError, NotRun
from ...faults import told
from ...simt.adapters import inductor
from . import triton
from .collecting import Found, Pick

OPERATION = re.compile(r"torch\.ops\.aten\.(\w+)")
"""As torch prints a graph."""
VIEWS = ("view", "permute", "transpose", "expand", "unsqueeze", "squeeze", "t", "slice", "select")
"""Operations that launch nothing."""


def collect(pick: Pick, arch: str) -> Found:
    """Raises NotRun if Inductor can't compile it this way, with its reason."""
    one = pick()
    placed = single.place(one, "cpu")
    with triton.noted() as kernels:
        try:
            done = inductor.run(one.op.reference, placed.inputs, None, arch)
        except (AssayError, NotRun):
            raise
        except Exception as error:
            raise NotRun(f"Inductor can't compile it for {arch}: {told(error)}") from error
        known: dict[str, tuple[inductor.Generated, int]] = {}
        for launch in done.kernels:
            first, count = known.get(launch.name, (launch, 0))
            known[launch.name] = first, count + 1
        parts = [
            triton.part(kernels, arch, g.compiled, g.grid, g.block, g.shared, count)
            for g, count in known.values()
        ]
    found = Found(one, placed, arch, parts, texts={"fx": done.graph, "inductor": done.written})
    found.notes.append(_fused(done.graph, len(done.kernels)))
    found.notes.append(done.note)
    if done.extern:
        found.notes.append(
            f"left to vendor libraries, no code of its own: {', '.join(done.extern)}"
        )
    if not parts:
        reason = "Inductor writes no kernel of its own for it"
        found.absent = dict.fromkeys(("ttir", "ttgir", "llir", "ptx", "sass"), reason)
    return found


def _fused(graph: str, launches: int) -> str:
    """What eager runs one after the other, and how many kernels it is here."""
    named = [name for name in OPERATION.findall(graph) if name not in VIEWS]
    operations = f"{len(named)} operation{'' if len(named) == 1 else 's'} in the graph"
    kernels = f"{launches} kernel{'' if launches == 1 else 's'}"
    return f"{operations} ({', '.join(named)}) became {kernels}"
