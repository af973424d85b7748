"""Warming up until times stay, other load on the CPUs, and the states of the cache: no device."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clock import caches, details, noise, warm
from assay.clock.member import Member
from assay.clock.neighbours import others, strangers
from assay.clock.power import REASONS, Reading, held, throttled


def member(index: int = 0) -> Member:
    return Member(index, None, lambda: None, "cpu", [], [[]])


def test_what_still_falls_is_not_still_and_what_stays_is() -> None:
    falling = [1.0 - 0.01 * i for i in range(20)]
    assert not warm.still(falling)
    assert not warm.still([1.0] * 19), "two whole windows are looked at"
    assert warm.still(falling + [0.8] * 10 + [0.8] * 10)


def test_noise_alone_is_still_and_a_step_in_it_is_not() -> None:
    draw = random.Random(1)
    calm = [1 + draw.gauss(0, 0.05) for _ in range(20)]
    assert warm.still(calm)
    assert not warm.still([2 * t for t in calm[:10]] + calm[10:])


@pytest.mark.parametrize(("settles", "wanted"), [(0, 20), (25, 50)])
def test_warming_together_ends_once_all_are_still(settles: int, wanted: int) -> None:
    one, other = member(0), member(1)
    calls = {0: 0, 1: 0}

    def sample(of: Member) -> float:
        calls[of.index] += 1
        late = of.index == 1 and calls[1] <= settles
        return 2.0 - 0.02 * calls[1] if late else 1.0

    warm.together([one, other], sample, cap=60.0)
    assert calls == {0: wanted, 1: wanted}
    assert one.still
    assert other.still
    assert one.warm_calls == wanted


def test_warming_ends_at_its_cap_and_says_so() -> None:
    one, count = member(), [0.0]

    def sample(_: Member) -> float:
        count[0] += 1
        return count[0]

    warm.together([one], sample, cap=0.0)
    assert count[0] == 2
    assert not one.still


STAT = """cpu  1 1 1 1 1 1 1 1 0 0
cpu0 100 5 20 9000 50 1 2 3 7 0
cpu1 10 0 0 9999 0 0 0 0 0 0
intr 5
"""


def test_what_is_busy_is_neither_idle_nor_counted_twice() -> None:
    assert noise.busy(STAT, (0,)) == 100 + 5 + 20 + 1 + 2 + 3
    assert noise.busy(STAT, (0, 1)) == 141
    assert noise.busy(STAT, (0, 5)) is None


def test_the_load_of_others_is_what_this_process_did_not_use() -> None:
    before, after = noise.Used(10.0, 4.0, 0.0), noise.Used(13.0, 6.0, 2.0)
    assert noise.others(before, after, 2) == pytest.approx(0.25)
    assert noise.others(None, after, 2) is None
    assert noise.others(before, noise.Used(10.0, 6.0, 2.0), 2) == 0.0, "ticks are coarse"


def test_cpus_of_different_cores_come_first() -> None:
    cores = {0: "a", 1: "a", 2: "b", 3: "b", 4: "c"}
    assert noise.apart([0, 1, 2, 3, 4], cores.__getitem__) == [0, 2, 4, 1, 3]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system holds no process")
def test_a_process_is_held_to_its_cpus() -> None:
    before = os.sched_getaffinity(0)
    try:
        assert noise.pin(1) == tuple(os.sched_getaffinity(0))
        assert len(os.sched_getaffinity(0)) == 1
    finally:
        os.sched_setaffinity(0, before)


@given(working=st.integers(1, 1 << 32), cache=st.integers(1, 1 << 28))
def test_rotated_is_claimed_only_if_the_sets_exceed_the_cache(working: int, cache: int) -> None:
    count = caches.sets_for(working, cache)
    said = caches.label("cuda", "rotated", count, working, cache)
    assert (said == "rotated") == (count * working >= 2 * cache)
    assert 1 <= count <= caches.MOST_SETS


def test_states_have_labels_that_no_other_device_has() -> None:
    assert caches.label("cuda", "cold", 1, 1, 1) == "cold L2"
    assert caches.label("cpu", "cold", 1, 1, 1) == "cold cache"
    assert caches.label("cuda", "hot", 1, 1, 1) == "hot"
    assert "hot" not in caches.COLD
    assert "rotated" not in caches.COLD, "some of it may still lie in the cache"


CAP, HEAT = (bit for bit, name in REASONS.items() if name in ("software power cap", "sync boost"))


def test_reasons_are_told_by_sample_and_none_is_dropped() -> None:
    bits = [0, CAP, CAP | HEAT, 0x1]
    readings = [Reading(1e9, 300.0, 50.0, b) for b in bits]
    assert held(readings) == {"software power cap": [1, 2], "sync boost": [2]}
    assert throttled(readings)[0] == "software power cap in 2 of 4 readings"


def test_sustained_speed_is_that_of_the_last_third() -> None:
    times = [(0.1 * i, 1e-5 if i < 30 else 1.2e-5) for i in range(1, 101)]
    readings = [(at, Reading(1.98e9 if at < 3 else 1.6e9, 700.0, 60.0, 0x4)) for at, _ in times]
    found = details.of(times, readings)
    assert found["period"] == pytest.approx(1.2e-5)
    assert found["first_period"] == pytest.approx(1e-5)
    assert found["clock_hz"] == [1.6e9, 1.6e9]
    assert found["held"][0].startswith("software power cap in")
    assert "watts" not in details.of(times, [])


Judge = Callable[..., list[Any]]

OP = """
import assay
op = assay.Op(
    "twice", lambda x: 2 * x, lambda make, n: (make.normal(n),), cases=assay.grid(n=[1 << 14])
)
"""


@pytest.mark.full
def test_states_of_the_cache_are_kept_with_the_samples(judge: Judge) -> None:
    from assay.clock.protocol import Wish

    found = {}
    for state in ("cold", "rotated", "hot"):
        (row,) = judge(OP, timed=True, budget=0.1, variants=("eager",), wish=Wish(cache=state))
        assert row.timing, row.not_timed
        found[state] = row.timing
    assert found["cold"].cache == "cold cache"
    assert found["cold"].calls == 1, "only the first call after a flush is cold"
    assert found["hot"].cache == "hot"
    assert found["hot"].calls > 1
    assert found["rotated"].sets == caches.MOST_SETS
    assert found["hot"].working_bytes == 2 * 4 * (1 << 14)
    assert found["hot"].cache_bytes
    (x,) = found["hot"].inputs
    assert (x.name, x.dtype, x.shape, x.stride) == ("x", "float32", (1 << 14,), (1,))
    assert x.low < -2
    assert x.high > 2
    assert abs(x.mean) < 0.1
    assert x.zeros == 0
    assert found["hot"].other_load is not None


PARENTS = {30: 20, 20: 10, 10: 1, 40: 1, 1: 0}


def test_other_processes_on_the_gpu_are_those_of_no_run_of_ours() -> None:
    assert strangers((30, 40), 30, 10, PARENTS.get) == (40,)
    assert strangers((30, 20), 30, 10, PARENTS.get) == ()
    assert strangers((40, 50), 30, 10, PARENTS.get) is None, "they are counted in other numbers"


def test_a_process_that_is_gone_is_somebody_else() -> None:
    assert others([os.getpid(), 2**22 + 1], os.getpid(), os.getppid()) == (2**22 + 1,)
