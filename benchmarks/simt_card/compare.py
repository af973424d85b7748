"""Our counts beside the card's, measure by measure, and the reasons for what differs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

LSU = "l1tex__t_{}_pipe_lsu_mem_global_op_{}"
SECTORS = "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_{}"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}"
EXECUTED = "smsp__sass_inst_executed_op_shared_{}"
MATRIX = "smsp__inst_executed_op_ldsm_pred_on_any"

MEASURES: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    # The copies of cp.async are loads to L1: LDGSTS is in op_ld.
    "global load requests": (
        ("global load", "shared copy", "global copy"),
        "requests",
        (LSU.format("requests", "ld"),),
    ),
    "global load sectors": (
        ("global load", "shared copy", "global copy"),
        "sectors",
        (LSU.format("sectors", "ld"),),
    ),
    "global store requests": (("global store",), "requests", (LSU.format("requests", "st"),)),
    "global store sectors": (("global store",), "sectors", (LSU.format("sectors", "st"),)),
    # Of atomics the sectors by SASS instruction: L1's own counter adds passes for lanes that name
    # one address (32 for 32 lanes), which is told beside it.
    "global atomic requests": (
        ("global atomic",),
        "requests",
        (LSU.format("requests", "atom"), LSU.format("requests", "red")),
    ),
    "global atomic sectors": (
        ("global atomic",),
        "sectors",
        (SECTORS.format("atom"), SECTORS.format("red")),
    ),
    # ldmatrix is counted apart where instructions are, and as a load where wavefronts are.
    "shared load requests": (("shared load",), "requests", (EXECUTED.format("ld"), MATRIX)),
    "shared load wavefronts": (("shared load",), "wavefronts", (WAVEFRONTS.format("ld"),)),
    "shared store requests": (("shared store",), "requests", (EXECUTED.format("st"),)),
    "shared store wavefronts": (("shared store",), "wavefronts", (WAVEFRONTS.format("st"),)),
    "shared atomic requests": (("shared atomic",), "requests", (EXECUTED.format("atom"),)),
    "shared atomic wavefronts": (("shared atomic",), "wavefronts", (WAVEFRONTS.format("atom"),)),
}
"""What is compared: our kinds of access, our number, the sum of counters that it must equal."""

TOLD = (
    "smsp__inst_executed",
    "smsp__thread_inst_executed",
    *(CONFLICTS.format(op) for op in ("ld", "st", "atom")),
    *(LSU.format("sectors", op) for op in ("atom", "red")),
)
"""What is told beside it: SASS instructions, which PTX instructions are not; the conflicts that the
card reports (wavefronts beyond those that the width of the access needs); the sectors of atomics
with a pass more for each further lane at an address."""


def counters(measures: list[str]) -> list[str]:
    return sorted({name for m in measures for name in MEASURES[m][2]})


@dataclass(frozen=True)
class Reason:
    """Why a case's numbers differ. Holds only while the machine code shows it."""

    measures: tuple[str, ...]
    text: str
    sass: str
    """A pattern of an instruction that must be in the listing."""
    ptx: str = ""
    """A pattern that must not be in the PTX."""

    def holds(self, measure: str, sass: dict[str, int], ptx: str) -> bool:
        seen = any(re.fullmatch(self.sass, name) for name in sass)
        return measure in self.measures and seen and not (self.ptx and re.search(self.ptx, ptx))


LOADS = ("shared load requests", "shared load wavefronts")
MERGED = Reason(
    LOADS,
    "ptxas merged four 32-bit loads of neighbouring words into one of 128 bits (LDS.128)",
    r"LDS\.128",
    r"ld\.shared\.v4",
)
REASONS = {
    "histogram_shared": Reason(
        ("shared atomic wavefronts",),
        "ptxas made atomicAdd(.., 1) without use of the old value ATOMS.POPC.INC, which counts the"
        " lanes of an address at once: two passes, whatever the conflicts",
        r"ATOMS\.POPC\.INC\.32",
    ),
    "matmul_tiled": MERGED,
    "matmul_registers": MERGED,
    "triton histogram": Reason(
        LOADS,
        "ptxas moved the load behind the exit of threads that do not use it: the guard of the"
        " atomic operation that is its only use (EXIT before LDS)",
        r"LDS",
    ),
}


def compared(
    name: str, ours: dict[str, Any], card: dict[str, float], sass: dict[str, int], ptx: str
) -> dict[str, Any]:
    """measures: [ours, card] of what either has; differs: measure -> the reason, or empty."""
    measures: dict[str, list[int]] = {}
    differs: dict[str, str] = {}
    for measure, (kinds, what, names) in MEASURES.items():
        if any(counter not in card for counter in names):
            continue
        mine = sum(getattr(ours[kind], what) for kind in kinds if kind in ours)
        theirs = int(sum(card[counter] for counter in names))
        if not mine and not theirs:
            continue
        measures[measure] = [mine, theirs]
        reason = REASONS.get(name)
        if mine != theirs:
            holds = reason is not None and reason.holds(measure, sass, ptx)
            differs[measure] = reason.text if reason and holds else ""
    return {"measures": measures, "differs": differs}
