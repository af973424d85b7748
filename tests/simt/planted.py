"""Kernels with a planted fault: what must be said of each, and its right twin one edit away."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))

import corpus
from compiling import compiled
from kernels.entry import FOLDER, Arguments, blank, integers, normal

import assay.simt as simt

MEMORY, ORDER, PYTHON = "planted_memory.cu", "planted_order.cu", "planted_python.py"
INT32 = torch.int32
Place = tuple[int, int, int]


@dataclass(frozen=True)
class Planted:
    """A kernel with a fault. Its lines are those that say FAULT in the kernel's text.

    word: the fault's, as simt.Fault has it. unwritten: arguments that hold nothing at first.
    block, thread: of the first one at fault, where the kernel decides it; else None.
    """

    source: str
    kernel: str
    word: str
    make: Callable[[], Arguments]
    grid: tuple[int, ...] = (1,)
    block: tuple[int, ...] = (64,)
    shared: int = 0
    unwritten: tuple[int, ...] = ()
    at_block: Place | None = None
    at_thread: Place | None = None
    way: str = "cuda"

    @property
    def name(self) -> str:
        return self.kernel if self.way == "cuda" else f"{self.way} {self.kernel}"


def lines(planted: Planted) -> tuple[int, ...]:
    """Line numbers of the kernel that say FAULT."""
    text = (FOLDER / planted.source).read_text().splitlines()
    begins = ("__global__ void ", "def ")
    start = next(
        n for n, line in enumerate(text) if any(f"{b}{planted.kernel}(" in line for b in begins)
    )
    end = next((n for n in range(start + 1, len(text)) if text[n].startswith(begins)), len(text))
    return tuple(n + 1 for n in range(start, end) if "FAULT" in text[n])


def run(planted: Planted, right: bool, **options: Any) -> tuple[simt.Fault, ...]:
    """The faults of a kernel, or of its twin."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return WAYS[planted.way](planted, right, **options)


def _cuda(planted: Planted, right: bool, **options: Any) -> tuple[simt.Fault, ...]:
    kernels = tuple(p.kernel for p in PLANTED if p.source == planted.source)
    ptx, names = compiled(FOLDER / planted.source, kernels, (f"-DRIGHT={int(right)}",))
    memory, args = simt.Memory(), planted.make()
    for at in planted.unwritten:
        storage = args[at].untyped_storage()
        memory.add(storage.data_ptr(), storage.nbytes(), written=False, keep=args[at])
    kernel = simt.load(ptx, entry=names[planted.kernel])
    return kernel.launch(
        planted.grid, planted.block, args, shared=planted.shared, memory=memory, **options
    ).faults


def _python(planted: Planted, right: bool) -> tuple[simt.Fault, ...]:
    kernel = getattr(importlib.import_module("kernels.planted_python"), planted.kernel)
    adapter = importlib.import_module(f"assay.simt.adapters.{planted.way}")
    launches, args = corpus.Launches(), planted.make()
    with adapter.shim(launches):
        if planted.way == "triton":
            kernel[planted.grid](*args, BLOCK=planted.block[0], RIGHT=right)
        else:
            kernel[planted.grid, planted.block](*args, right)
    return tuple(fault for one in launches.made for fault in one.faults)


WAYS: dict[str, Callable[..., tuple[simt.Fault, ...]]] = {
    "cuda": _cuda,
    "triton": _python,
    "numba": _python,
}


def ints(n: int, fill: int = 0) -> torch.Tensor:
    return torch.full((n,), fill, dtype=INT32)


def pair(n: int, out: int = 0) -> Callable[[], Arguments]:
    return lambda: [blank(out or n), normal(1, n)]


def sized(n: int) -> Callable[[], Arguments]:
    return lambda: [blank(n), normal(1, n), n]


def whole(n: int) -> Callable[[], Arguments]:
    return lambda: [ints(n, -1), integers(1, 0, 99, n)]


def arena() -> Arguments:
    """Two tensors of one run of memory: the end of one is the start of the other."""
    return [blank(4 * 32), normal(1, 4, 32), 4, 32]


BOUNDS, UNWRITTEN, RACE = "out of bounds", "read before written", "race"
DIVERGENT, LANE, DEADLOCK = "barrier in divergent code", "lane missing", "deadlock"
ADDRESSES = (
    Planted(MEMORY, "store_beyond", BOUNDS, sized(100), at_thread=(100, 0, 0), block=(128,)),
    Planted(
        MEMORY,
        "load_beyond",
        BOUNDS,
        sized(100),
        grid=(2,),
        at_block=(1, 0, 0),
        at_thread=(35, 0, 0),
    ),
    Planted(MEMORY, "vector_tail", BOUNDS, sized(102), at_thread=(25, 0, 0)),
    Planted(
        MEMORY,
        "atomic_beyond",
        BOUNDS,
        lambda: [ints(8), torch.arange(64, dtype=INT32) % 9, 8],
        at_thread=(8, 0, 0),
    ),
    Planted(MEMORY, "negative_index", BOUNDS, sized(60), at_thread=(0, 0, 0)),
    Planted(
        MEMORY,
        "into_neighbour",
        BOUNDS,
        arena,
        grid=(4,),
        block=(32,),
        at_block=(3, 0, 0),
        at_thread=(0, 0, 0),
    ),
    Planted(
        MEMORY,
        "dynamic_beyond",
        BOUNDS,
        pair(64),
        shared=256,
        at_thread=(63, 0, 0),
    ),
    Planted(MEMORY, "static_beyond", BOUNDS, pair(64), at_thread=(32, 0, 0)),
    Planted(MEMORY, "null_pointer", BOUNDS, lambda: [blank(64), normal(1, 64), None]),
    Planted(
        MEMORY,
        "constant_beyond",
        BOUNDS,
        lambda: [blank(64), torch.arange(64, dtype=INT32)],
        at_thread=(4, 0, 0),
    ),
    Planted(
        MEMORY,
        "wrong_stride",
        BOUNDS,
        lambda: [blank(37), normal(1, 5, 37), 5, 37],
        at_thread=(33, 0, 0),
    ),
    Planted(MEMORY, "misaligned_vector", "misaligned", pair(260, 256), at_thread=(0, 0, 0)),
    Planted(MEMORY, "misaligned_shared", "misaligned", pair(64), block=(32,), at_thread=(0, 0, 0)),
    Planted(MEMORY, "asserted", "assertion", lambda: [blank(32), torch.arange(32.0)], block=(32,)),
)
VALUES = (
    Planted(
        MEMORY,
        "scratch_unwritten",
        UNWRITTEN,
        lambda: [blank(64), torch.empty(64), normal(1, 64)],
        unwritten=(0, 1),
        at_thread=(0, 0, 0),
    ),
    Planted(
        MEMORY,
        "shared_tail",
        UNWRITTEN,
        lambda: [blank(32), normal(1, 50), 50],
        at_thread=(18, 0, 0),
    ),
    Planted(MEMORY, "no_wait", UNWRITTEN, pair(32), block=(32,), at_thread=(0, 0, 0)),
    Planted(MEMORY, "wait_too_few", UNWRITTEN, pair(64, 32), block=(32,), at_thread=(0, 0, 0)),
    Planted(MEMORY, "reuse_in_flight", RACE, pair(32), block=(32,), at_thread=(0, 0, 0)),
)
RACES = (
    Planted(ORDER, "no_barrier_after_write", RACE, whole(128), block=(128,)),
    Planted(ORDER, "no_barrier_before_reuse", RACE, whole(64)),
    Planted(ORDER, "no_barrier_in_loop", RACE, lambda: [ints(64), integers(1, 0, 9, 320), 5]),
    Planted(ORDER, "no_syncwarp", RACE, whole(32), block=(32,)),
    Planted(ORDER, "wrong_barrier", RACE, whole(64)),
    Planted(ORDER, "wait_without_barrier", RACE, pair(64)),
    Planted(ORDER, "one_word", RACE, lambda: [ints(3)], grid=(3,)),
    Planted(ORDER, "same_value", RACE, lambda: [ints(1), integers(1, 0, 9, 64)]),
    Planted(ORDER, "overlapping_tiles", RACE, sized(90), grid=(3,), block=(32,)),
    Planted(ORDER, "plain_increment", RACE, lambda: [ints(1), integers(1, 1, 9, 64)]),
    Planted(ORDER, "no_fence", RACE, lambda: [ints(1), ints(1), ints(1)], grid=(2,), block=(32,)),
    Planted(ORDER, "neighbour_block", RACE, whole(64), grid=(2,), block=(32,)),
)
WAITS = (
    Planted(ORDER, "half_a_warp", DIVERGENT, whole(64)),
    Planted(ORDER, "divergent_loop", DIVERGENT, lambda: [ints(64), torch.arange(64, dtype=INT32)]),
    Planted(ORDER, "two_branches", DIVERGENT, whole(64)),
    Planted(ORDER, "lanes_left", LANE, whole(32), block=(32,)),
    Planted(ORDER, "lane_not_named", LANE, whole(32), block=(32,)),
    Planted(ORDER, "flag_unset", DEADLOCK, lambda: [ints(1), ints(1)], grid=(2,), block=(1,)),
    Planted(ORDER, "lock_kept", DEADLOCK, lambda: [ints(1), ints(1)], grid=(3,), block=(32,)),
    Planted(ORDER, "too_few_warps", DEADLOCK, lambda: [ints(96)], block=(96,)),
    Planted(ORDER, "embrace", DEADLOCK, lambda: [ints(1), ints(2), ints(1)]),
)
PYTHONS = (
    *(
        Planted(PYTHON, kernel, word, make, grid=(2,), block=(128,), way="triton")
        for kernel, word, make in (
            ("unmasked_store", BOUNDS, lambda: [blank(201), normal(1, 201), 201]),
            ("unmasked_load", BOUNDS, lambda: [blank(201), normal(1, 201), 201]),
            ("wrong_mask", BOUNDS, lambda: [blank(6, 101), normal(1, 6, 101), 101]),
            ("plain_add", RACE, lambda: [torch.zeros(128), normal(1, 256)]),
            ("overlapping_programs", RACE, lambda: [blank(256), normal(1, 256)]),
            ("negative_offset", BOUNDS, lambda: [blank(201), normal(1, 201), 201]),
        )
    ),
    Planted(PYTHON, "missing_syncthreads", RACE, pair(128), block=(128,), way="numba"),
    Planted(
        PYTHON,
        "index_beyond",
        BOUNDS,
        pair(100),
        grid=(2,),
        way="numba",
        at_block=(1, 0, 0),
        at_thread=(36, 0, 0),
    ),
    Planted(PYTHON, "shared_unwritten", UNWRITTEN, pair(50, 64), way="numba", at_thread=(0, 0, 0)),
    Planted(PYTHON, "barrier_in_branch", DIVERGENT, pair(64), way="numba"),
)
PLANTED: tuple[Planted, ...] = (*ADDRESSES, *VALUES, *RACES, *WAITS, *PYTHONS)


def outcome(planted: Planted) -> str:
    """What is not as it should be, or an empty text."""
    faults, twin = run(planted, False), run(planted, True)
    if twin:
        return f"the right twin: {twin[0]}"
    if not faults:
        return "nothing was said"
    named = [f for f in faults if f.word == planted.word and f.line in lines(planted)]
    if not named:
        return f"{planted.word} at {lines(planted)} was not said: " + "; ".join(
            map(str, faults[:3])
        )
    others = [f for f in faults if f.line not in lines(planted) and f.word != "copy not waited for"]
    if others:
        return f"also {others[0]}"
    if planted.at_block is not None and named[0].block != planted.at_block:
        return f"block {named[0].block}, not {planted.at_block}: {named[0]}"
    if planted.at_thread is not None and named[0].thread != planted.at_thread:
        return f"thread {named[0].thread}, not {planted.at_thread}: {named[0]}"
    return ""


def main(words: list[str]) -> None:
    for planted in PLANTED:
        if not words or any(word in planted.name for word in words):
            try:
                said = outcome(planted)
            except Exception as error:  # noqa: BLE001 - shown, and the next one is run
                said = f"{type(error).__name__}: {str(error)[:500]}"
            print(f"{planted.name:28}{said or 'right'}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
