"""The clock's own error table: what is made of samples, and a real one of the CPU's clock."""

from __future__ import annotations

import math

import numpy as np
import pytest

from assay.clock import graphs
from assay.commands import ruler
from assay.selftest.clock import (
    BLOCK,
    Bias,
    Repeat,
    Ruler,
    Series,
    alarms,
    noise_floor,
    upper_bound,
)
from assay.selftest.trying import tried

LENGTH = 5e-5


def series(seed: int, longer: float, noise: float = 0.002, blocks: int = 50) -> Series:
    rng = np.random.default_rng(seed)
    n = BLOCK * blocks

    def drawn(length: float) -> np.ndarray:
        return length * (1 + noise * rng.standard_normal(n))

    return Series(drawn(LENGTH), drawn(LENGTH), drawn(LENGTH * (1 + longer)))


def test_equal_kernels_are_not_told_apart_and_a_planted_one_is_seen() -> None:
    made = alarms(LENGTH, 0.01, [series(0, 0.01)], [series(s, 0.01) for s in range(1, 5)])
    assert (made.same, made.slower) == (200, 200)
    assert (made.false, made.missed) == (0, 0)
    assert 0 < made.noise < 0.005
    assert made.margin == 0.005


def test_a_clock_that_can_not_see_a_difference_misses_it() -> None:
    made = alarms(LENGTH, 0.001, [series(0, 0.001)], [series(1, 0.001)])
    assert made.missed > 40


def test_a_clock_whose_second_kernel_always_reads_more_raises_false_alarms() -> None:
    honest = series(1, 0.01)
    biased = Series(honest.one, honest.again * 1.02, honest.longer)
    made = alarms(LENGTH, 0.01, [series(0, 0.01)], [biased])
    assert made.false == made.same == 50


def test_the_noise_floor_is_the_largest_until_there_are_a_thousand() -> None:
    assert noise_floor([1.0, 1.01, 0.995]) == pytest.approx(0.01)
    many = [math.exp(x) for x in np.linspace(0, 0.01, 2000)]
    assert noise_floor(many) == pytest.approx(math.expm1(0.01 * 0.999), rel=1e-3)
    assert noise_floor([]) == 0.0


def test_a_coarse_step_widens_the_margin() -> None:
    flat = np.full(BLOCK * 2, 5e-6)
    stepped = flat + 3.2e-8 * (np.arange(BLOCK * 2) % 2)
    one = Series(stepped, stepped, stepped)
    assert alarms(5e-6, 0.03, [one], [one]).margin == pytest.approx(3.2e-8 / 5e-6, rel=1e-3)


@pytest.mark.parametrize(
    ("events", "trials", "bound"),
    [(0, 3000, 0.000998), (0, 1, 0.95), (0, 0, 1.0), (3, 1000, 0.0074)],
)
def test_upper_bound_of_a_rate(events: int, trials: int, bound: float) -> None:
    assert upper_bound(events, trials) == pytest.approx(bound, rel=0.02)


def test_the_period_cancels_what_every_replay_costs() -> None:
    found = graphs.of((8, 16, 32), [6e-6 + n * 2e-6 for n in (8, 16, 32)])
    assert found.seconds == pytest.approx(2e-6)
    assert found.straight
    bent = graphs.of((8, 16, 32), [6e-6 + n * 2e-6 for n in (8, 20, 32)])
    assert not bent.straight


READ = {"in use": 5.8e-6, "events": 5.85e-6, "raw window": 8e-6, "graph": 8.1e-6}


def table(**changes: object) -> Ruler:
    given: dict[str, object] = dict(
        machine="m",
        device="cuda:0",
        processes=4,
        bias=(Bias(length=5e-6, true=5.8e-6, readings=READ),),
        alarms=(alarms(LENGTH, 0.01, [series(0, 0.01)], [series(1, 0.01)]),),
        repeats=(Repeat(length=2e-5, medians=(2e-5, 2.001e-5, 2.002e-5)),),
        cycles=(Repeat(length=2e-5, medians=(2e-5, 2e-5, 2.01e-5)),),
        flush={"bytes": 1 << 24, "hot": 6e-6, "flushed": 1e-5, "flushed twice": 1.01e-5},
        seconds=20.0,
        time="",
    )
    return Ruler(**{**given, **changes})  # type: ignore[arg-type]


def test_the_table_marks_what_is_off_and_fits_the_page() -> None:
    lines = list(ruler.text(table()))
    assert all(len(line) <= 80 for line in lines), lines
    (bias,) = [line for line in lines if line.startswith("    5.8 us")]
    assert "+0 ns (+0.00 %) " in bias
    assert "+50 ns (+0.86 %) " in bias
    assert bias.rstrip().endswith("+2300 ns (+39.66 %) !")
    assert any("0 of 50 equal pairs told apart (<= 5.82 %)" in line for line in lines)
    assert any("within 0.100 %; of a spin in cycles 0.500 %" in line for line in lines)
    assert lines[-1].startswith("flush: proven")


def test_a_flush_that_does_not_flush_is_told() -> None:
    same = {"bytes": 1 << 24, "hot": 6e-6, "flushed": 6.1e-6, "flushed twice": 6.1e-6}
    assert list(ruler.text(table(flush=same)))[-1].startswith("flush: NOT proven")
    more = {"bytes": 1 << 24, "hot": 6e-6, "flushed": 8e-6, "flushed twice": 1e-5}
    assert list(ruler.text(table(flush=more)))[-1].startswith("flush: NOT proven")


@pytest.mark.full
def test_the_cpus_clock_is_tried(session, monkeypatch) -> None:
    monkeypatch.setattr("assay.selftest.trying.LENGTHS", (1e-4, 1e-3))
    monkeypatch.setattr("assay.selftest.trying.REPEATED", (1e-4,))
    made = tried(session, "cpu", 2, 1)
    assert [one.length for one in made.bias] == [1e-4, 1e-3]
    for one in made.bias:  # it can't end before its time, and Python takes some of its own
        assert 0 < one.off("wall") < 0.5 * one.true
    assert [(a.same, a.slower) for a in made.alarms] == [(1, 1), (1, 1)]
    assert str(made.flush["why"]).startswith("samples on a CPU")
