"""Every kernel of the corpus gives what its reference says, faultless; its barriers matter."""

from __future__ import annotations

import importlib.util

import pytest
from corpus import ENTRIES, run, wrong
from kernels.entry import Entry
from mutants import mutants, unproven
from tiers import tier

QUICK = {
    "copy_float4",
    "interpret",
    "sum_tree_unrolled",
    "transpose_swizzled",
    "named_barriers",
    "gather_buffers",
    "look_back",
}
"""Of each kind one, run in the plain tier."""
MUTATED_QUICK = {"transpose_in_place"}
MUTATED_SLOW = {
    *("softmax<float>", "layernorm", "cross_entropy", "matmul_registers", "last_block_sum"),
    *("cub_radix_sort", "cub_reduce", "cub_scan", "batch_statistics", "scan_blelloch"),
    *("numba softmax", "numba reduce_sum", "numba matmul", "numba scan", "triton layernorm"),
    *("wmma_int8", "rank_k", "triton welford", "matmul_async", "scan_hillis_steele"),
    *("called_barriers", "norm_rows", "sum_tree_unrolled", "softmax_online", "rmsnorm_bf16"),
    "triton deviation 128",
}
"""Those of many barriers, each a run of its own: more than three seconds in all."""
SLOW = {
    *("wmma_half", "triton matmul ieee", "triton matmul int8", "triton matmul tf32"),
    *("smallest_eight", "softmax<__nv_bfloat16>", "triton attention", "numba softmax"),
    *("warp_transpose", "matmul_registers", "library", "copy_once", "softmax_warp"),
}
"""More than three seconds, beside one of their kind that takes fewer."""
PACKAGES = {"cuda": "cuda.bindings", "triton": "triton", "numba": "numba", "inductor": "triton"}


def listed(entries: list[Entry], quick: set[str], slow: set[str] = frozenset()) -> list[object]:
    assert quick | slow <= {e.name for e in entries}
    return [pytest.param(e, id=e.name, marks=tier(e.name, quick, slow)) for e in entries]


def available(entry: Entry) -> None:
    package = PACKAGES[entry.way]
    try:
        found = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        found = None
    if found is None:
        pytest.skip(f"{package} is not installed")
    if entry.source == "wmma.cu":
        from pathlib import Path

        from compiling import headers

        if not any((Path(folder) / "crt" / "mma.h").exists() for folder in headers()):
            pytest.skip("mma.h needs nvidia-cuda-crt, which is not installed")


@pytest.mark.parametrize("entry", listed(list(ENTRIES), QUICK, SLOW))
def test_right_without_a_fault(entry: Entry) -> None:
    available(entry)
    ran = run(entry)
    assert not ran.faults
    assert not wrong(entry, ran)


IN_ORDERS = [
    pytest.param(
        entry,
        order,
        id=f"{entry.name}-{order}",
        marks=pytest.mark.full if order == 1 and entry.name not in SLOW else pytest.mark.gallery,
    )
    for entry in ENTRIES
    if entry.way == "cuda" and not entry.printed
    for order in (1, 2)
]


@pytest.mark.parametrize(("entry", "order"), IN_ORDERS)
def test_right_in_any_order_of_warps_and_blocks(entry: Entry, order: int) -> None:
    available(entry)
    ran = run(entry, order=order)
    assert not ran.faults
    assert not wrong(entry, ran)


MUTATED = [entry for entry in ENTRIES if entry.mutate]


@pytest.mark.parametrize("entry", listed(MUTATED, MUTATED_QUICK, MUTATED_SLOW))
def test_each_barrier_left_out_is_noticed_or_proven_redundant(entry: Entry) -> None:
    available(entry)
    found = mutants(entry)
    assert found
    assert not unproven(entry, found)


def test_the_corpus_is_as_large_as_it_says() -> None:
    assert len(ENTRIES) == len({entry.name for entry in ENTRIES})
    assert len(MUTATED) >= 16
    assert sum("counts" in entry.tags for entry in ENTRIES) >= 12
    kernels = {(entry.way, entry.source, entry.kernel) for entry in ENTRIES}
    assert len(kernels) >= 150
