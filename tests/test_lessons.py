"""Lessons of the course notes as examples, each shown by exact counts, without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from assay.counting import Counted, counted_in
from assay.session import Session
from assay.target import parse
from assay.types import Row

LESSONS = Path(__file__).parents[1] / "examples" / "lessons"
Judge = Callable[..., list[Row]]


def counted(session: Session, target: str, variant: str, **case: object) -> Counted:
    place = str(LESSONS / target) if target.endswith(".py") else target
    return counted_in(session, parse(place), variant, case, "sm_90")  # type: ignore[arg-type]


@pytest.mark.full
@pytest.mark.parametrize("paths", [1, 8])
def test_lanes_that_part_run_every_path_and_warps_that_part_one(
    session: Session, paths: int
) -> None:
    case = {"n": 4096, "paths": paths}
    lanes, warps = (
        counted(session, "branches.py", f"cuda/{name}", **case).counts
        for name in ("per_lane", "per_warp")
    )
    products = 16 * 4096 // 32  # of warps, if all lanes agree
    assert warps.classes["fp32"] == products
    assert lanes.classes["fp32"] == paths * products
    assert (lanes.launches, warps.launches) == (1, 1), "a branch is no kernel call"


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (32, 32)])
def test_a_stride_decides_how_many_sectors_a_request_fetches(
    session: Session, stride: int, sectors: int
) -> None:
    load = counted(session, "strides.py", "cuda", n=4096, stride=stride).counts.access(
        "global load"
    )
    assert load.sectors == sectors * load.requests
    assert load.ideal_sectors == 4 * load.requests


@pytest.mark.full
def test_atomics_contend_by_slots_and_privatising_takes_them_off_global_memory(
    session: Session,
) -> None:
    def of(variant: str, slots: int) -> Counted:
        return counted(session, "counters", variant, n=8192, slots=slots)

    loads = [of("cuda/global", slots).counts.access("global atomic") for slots in (1, 7, 4096)]
    one, few, many = (load.contended / load.lanes for load in loads)
    assert one == 1, "all lanes of a warp name one address, and wait for one another"
    assert one > few > many
    assert many < 0.1
    private = of("cuda/privatised", 7).counts
    assert private.access("global atomic").lanes < loads[1].lanes / 100
    assert private.access("shared atomic").lanes > 8192, "each element, in its block's own copy"


@pytest.mark.full
def test_every_step_from_a_loop_to_threads_is_right(judge: Judge, session: Session) -> None:
    place = str(LESSONS / "loop_to_threads.py")
    case = {"n": 1000}
    for row in judge(place, case=case):
        assert row.word == "right", (row.label, row.reason)
    alone, dealt, naive = (
        counted(session, "loop_to_threads.py", f"cuda/{name}", **case).counts
        for name in ("one_thread", "strided", "naive")
    )
    assert alone.active_lanes == 1
    assert min(dealt.active_lanes, naive.active_lanes) > 25
    assert alone.warp_instructions > 5 * naive.warp_instructions


def test_a_launch_from_the_device_is_refused_with_the_compilers_words(judge: Judge) -> None:
    rows = {row.variant: row for row in judge(str(LESSONS / "child_launch.py"))}
    assert rows["cuda"].word == "did not build"
    assert "device-side kernel launch" in rows["cuda"].reason
    assert rows["eager"].word == "right"


@pytest.mark.full
@pytest.mark.parametrize("variant", ["cuda/naive", "cuda/vectorised", "triton"])
def test_gelu_is_one_launch_in_float_math_that_moves_what_it_must(
    session: Session, variant: str
) -> None:
    n = 4096
    found = counted(session, "gelu", variant, n=n, dtype="float32").counts
    assert found.launches == 1
    assert found.access("global load").bytes == found.access("global store").bytes == 4 * n
    assert "fp64" not in found.classes
