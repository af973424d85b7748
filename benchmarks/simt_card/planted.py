"""The launches of faults.cu, and what each tool is known to see of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).with_name("faults.cu")
GLOBAL_RACE = "racecheck watches shared memory alone"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def zeros(n: int) -> np.ndarray:
    return np.zeros(n, np.float32)


@dataclass(frozen=True)
class Planted:
    name: str
    """The kernel, a template of `bool RIGHT`."""
    args: list[Any]
    seen: str = "both"
    """By `both`, by assay.simt alone (`assay`) or by the `sanitizer` alone."""
    reason: str = ""
    """Why one of them does not see it."""
    grid: int = 1
    block: int = 64
    shared: int = 0
    garbage: tuple[int, ...] = ()
    """Positions of arrays that nobody has written before the launch."""

    def kernel(self, right: bool) -> str:
        return f"{self.name}<{str(right).lower()}>"


def every() -> list[Planted]:
    whole = np.zeros(64, np.int32)
    return [
        Planted("store_beyond", [zeros(1000), 1000], grid=8, block=128),
        Planted("load_beyond", [zeros(1000), zeros(1000), 1000], grid=8, block=128),
        Planted("load_before", [zeros(1000), zeros(1000), 1000], grid=8, block=128),
        Planted(
            "store_to_neighbour",
            [zeros(128), zeros(128)],
            "assay",
            "the next allocation begins there, and memcheck allows what any allocation holds",
            block=128,
        ),
        Planted("misaligned_load", [zeros(128), zeros(132)]),
        Planted("null_store", [zeros(64), None]),
        Planted("unwritten_global", [zeros(64), zeros(64)], garbage=(1,)),
        Planted("unwritten_shared", [zeros(64)], "assay", "initcheck watches global memory alone"),
        Planted("shared_beyond", [zeros(64)], shared=256),
        Planted("race_no_barrier", [zeros(64)]),
        Planted("race_in_loop", [zeros(64), 4]),
        Planted("race_in_warp", [zeros(32)], block=32),
        Planted("race_of_stores", [whole]),
        Planted(
            "race_with_atomics",
            [whole],
            "assay",
            "racecheck reports no hazard between a write and atomic operations",
        ),
        Planted("copy_not_awaited", [zeros(64), zeros(64)]),
        Planted("divergent_barrier", [zeros(64)]),
        Planted("warp_barrier_of_others", [zeros(32)], block=32),
        Planted(
            "shuffle_from_absent",
            [whole[:32]],
            "assay",
            "synccheck does not follow where a shuffle reads from",
            block=32,
        ),
        Planted("global_race_in_block", [zeros(64), zeros(64)], "assay", GLOBAL_RACE),
        Planted("global_race_of_blocks", [zeros(1)], "assay", GLOBAL_RACE, grid=4, block=32),
    ]
