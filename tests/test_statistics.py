"""Statistics on series whose answer is known, and what plausibility refuses."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from assay.clock import cpu
from assay.clock.plausible import refuse
from assay.clock.statistics import (
    block_length,
    correlation_time,
    interval,
    ratio,
    seconds,
    steadiness,
    verdict,
)
from assay.types import Floor

MEDIAN = 1e-5


def white(rng: np.random.Generator, n: int, noise: float = 0.02) -> np.ndarray:
    return MEDIAN * np.exp(noise * rng.standard_normal(n))


def correlated(rng: np.random.Generator, n: int, phi: float = 0.95) -> np.ndarray:
    """AR(1) of 2 % spread about the same median."""
    steps, x = rng.standard_normal(n), np.empty(n)
    x[0] = steps[0]
    for i in range(1, n):
        x[i] = phi * x[i - 1] + math.sqrt(1 - phi * phi) * steps[i]
    return MEDIAN * np.exp(0.02 * x)


def width(samples: np.ndarray) -> float:
    low, middle, high = interval(samples, draws=400)
    return (high - low) / 2 / middle


def coverage(series: Iterator[np.ndarray]) -> float:
    hits = [low <= MEDIAN <= high for low, _, high in (interval(s, draws=200) for s in series)]
    return sum(hits) / len(hits)


# Interval of the median


@pytest.mark.parametrize("n", [12, 20, 32, 64, 200])
def test_interval_of_independent_samples_holds_the_median_19_times_in_20(n: int) -> None:
    rng = np.random.default_rng(n)
    share = coverage(white(rng, n) for _ in range(200))
    assert share >= 0.92
    naive = 1.96 * 1.2533 * 0.02 / math.sqrt(n)  # sigma of a median: 1.2533 sigma / sqrt(n)
    assert np.mean([width(white(rng, n)) for _ in range(20)]) < 2 * naive


def test_interval_of_resembling_samples_is_wide_enough() -> None:
    rng = np.random.default_rng(5)
    series = [correlated(rng, 2000) for _ in range(150)]
    assert coverage(iter(series)) >= 0.9
    naive = 1.96 * 1.2533 * 0.02 / math.sqrt(2000)
    assert np.median([width(s) for s in series[:20]]) > 4 * naive


def test_short_resembling_series_get_their_whole_range_and_no_less() -> None:
    samples = correlated(np.random.default_rng(8), 60)
    assert len(samples) // block_length(samples) < 10
    low, _, high = interval(samples)
    assert (low, high) == (samples.min(), samples.max())


def test_correlation_time_is_that_of_the_series() -> None:
    rng = np.random.default_rng(1)
    assert correlation_time(white(rng, 2000)) < 1.5
    assert 25 < correlation_time(correlated(rng, 20_000)) < 55  # (1 + phi) / (1 - phi) = 39
    assert correlation_time(np.array([1.0, 1.0, 1.0, 1.0])) == 1.0
    alternating = np.array([1.0, 1.1] * 50)
    assert correlation_time(alternating) == 1.0


def test_few_samples_give_the_range_between_order_statistics() -> None:
    assert interval([3.0]) == (3.0, 3.0, 3.0)
    assert interval([1.0, 2.0]) == (1.0, 1.5, 2.0)
    assert interval([2.0, 3.0, 1.0, 5.0, 4.0]) == (1.0, 3.0, 5.0)
    # Of 9 independent samples the second and the eighth hold the median 96 times in 100.
    nine = [5.0, 1.0, 9.0, 3.0, 7.0, 2.0, 8.0, 4.0, 6.0]
    assert interval(nine) == (2.0, 5.0, 8.0)


def test_constant_ticks_give_no_width_and_no_complaint() -> None:
    low, middle, high = interval([2.016e-6] * 64)
    assert low == middle == high == 2.016e-6
    assert steadiness([2.016e-6] * 64) == ""
    ticks = [2.016e-6, 2.048e-6] * 32
    low, _, high = interval(ticks)
    assert 2.016e-6 <= low <= high <= 2.048e-6
    assert steadiness(ticks) == ""


def test_interval_is_the_same_every_time_it_is_asked() -> None:
    samples = white(np.random.default_rng(3), 100)
    assert interval(samples) == interval(samples)


# Steadiness


def test_noise_alone_is_steady() -> None:
    rng = np.random.default_rng(11)
    sizes = (8, 9, 12, 16, 32, 64, 200)
    noted = [steadiness(white(rng, n)) for n in sizes for _ in range(40)]
    assert sum(map(bool, noted)) <= 0.05 * len(noted), noted


@pytest.mark.parametrize("later", [2, 10, 90, 150])
def test_a_step_at_sample_10_is_named_with_both_levels(later: int) -> None:
    samples = [10.0] * 10 + [12.0] * later
    assert steadiness(samples) == "not steady: 10 s, then 12 s"
    rng = np.random.default_rng(later)
    noisy = np.array(samples) * np.exp(0.005 * rng.standard_normal(len(samples)))
    assert steadiness(noisy).startswith("not steady: ")


def test_drift_is_named_from_first_to_last() -> None:
    rng = np.random.default_rng(2)
    samples = white(rng, 300, 0.01) * np.linspace(1, 1.1, 300)
    said = steadiness(samples)
    assert said.startswith("not steady: 10.")
    assert steadiness(samples[::-1]).startswith("not steady: 10.")
    assert said != steadiness(samples[::-1])


def test_two_modes_are_both_reported_and_nothing_is_dropped() -> None:
    samples = np.array([1.4e-5 if i % 10 == 3 else 1.0e-5 for i in range(100)])
    assert steadiness(samples) == "two modes: 10 us (90 %), 14 us (10 %)"
    noisy = samples * np.exp(0.01 * np.random.default_rng(4).standard_normal(100))
    assert steadiness(noisy).startswith("two modes: ")
    assert "(90 %)" in steadiness(noisy)
    assert interval(samples)[1] == 1.0e-5
    assert len(samples) == 100


def test_one_slow_sample_is_no_mode() -> None:
    samples = [1.0e-5] * 99 + [9e-5]
    assert steadiness(samples[50:] + samples[:50]) == ""


def test_too_few_samples_say_nothing() -> None:
    assert steadiness([1.0, 2.0] * 4) == ""
    assert steadiness([]) == ""


# Ratio and verdict


def test_ratio_is_paired_by_round_so_that_common_drift_cancels() -> None:
    rng = np.random.default_rng(6)
    drift = np.exp(np.cumsum(0.02 * rng.standard_normal(200)))
    ours, theirs = 1e-5 * drift, 1.03e-5 * drift * np.exp(0.002 * rng.standard_normal(200))
    order = rng.permutation(200)
    low, middle, high = ratio(ours, range(200), theirs[order], order.tolist())
    assert low < 1.03 < high
    assert high - low < 0.002
    assert middle == pytest.approx(1.03, abs=1e-3)
    assert verdict(low, middle, high) == "faster"
    swapped = ratio(theirs, range(200), ours, range(200))
    assert verdict(*swapped) == "slower"


def test_ratio_uses_shared_rounds_alone() -> None:
    low, middle, high = ratio([1.0, 1.0, 99.0], [0, 1, 2], [2.0, 2.0, 1.0], [0, 1, 3])
    assert (low, middle, high) == pytest.approx((2.0, 2.0, 2.0))
    with pytest.raises(ValueError, match="not timed in one schedule"):
        ratio([1.0, 1.0], [0, 1], [2.0, 2.0], [2, 3])


@pytest.mark.parametrize(
    ("low", "middle", "high", "word"),
    [
        (1.01, 1.02, 1.03, "faster"),
        (0.97, 0.98, 0.99, "slower"),
        (0.997, 1.0, 1.003, "same"),
        (0.98, 1.0, 1.02, "cannot tell"),
        (0.99, 1.02, 1.05, "cannot tell"),
        (1.001, 1.003, 1.004, "same"),
        (1.001, 1.004, 1.02, "cannot tell"),
        (math.nan, math.nan, math.nan, "cannot tell"),
    ],
)
def test_verdict_of_an_interval(low: float, middle: float, high: float, word: str) -> None:
    assert verdict(low, middle, high) == word


def test_a_wider_margin_claims_less() -> None:
    assert verdict(1.01, 1.02, 1.03, margin=0.03) == "same"


# Plausibility

HONEST: dict[str, Any] = dict(
    samples=[4.5e-5] * 20,
    median=4.5e-5,
    null_seconds=2.3e-6,
    late=0,
    host_seconds=1e-5,
    floor=Floor(seconds=4.0e-5, by="moving 134,217,728 bytes at 3,352 GB/s"),
)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"samples": []}, "no finite time"),
        ({"samples": [4.5e-5, math.nan]}, "no finite time"),
        ({"samples": [4.5e-5, math.inf]}, "no finite time"),
        (
            {"samples": [0.0] * 20, "median": 0.0, "null_seconds": None},
            "below the timer's resolution",
        ),
        ({"samples": [4.5e-5] * 19 + [0.0]}, "below the timer's resolution"),
        ({"samples": [4.5e-5] * 19 + [-1e-6]}, "below the timer's resolution"),
        ({"late": 2}, "host-bound: in 2 of 20 samples .* which took 10 us"),
        ({"late": 20, "host_seconds": None}, "host-bound: in 20 of 20 samples"),
        ({"median": 2.3e-6}, "no more than an empty window .*nothing ran on the current stream"),
        (
            {"median": -1.1e-6, "fixed_seconds": 2.4e-6},
            r"it reads 1.30 us, no more than an empty window .2.30 us.",
        ),
        ({"kernels": 0}, "nothing ran on the GPU in a timed call"),
        ({"kernels": 3, "elsewhere": 1}, "1 of 3 kernels and copies, which the events do not see"),
        (
            {"kernels": 1, "uneven": "7 kernels and copies in 12 calls: not the same in each"},
            "7 ker",
        ),
        ({"kernels": 1, "span_seconds": 9e-5}, "events say 45.00 us, and CUPTI 90.00 us"),
        ({"kernels": 1, "span_seconds": 4.2e-5}, "the clocks disagree"),
        ({"kernels": 3, "span_seconds": 5e-6, "median": 8e-6}, "disagree"),
        (
            {"kernels": 4, "span_seconds": 6e-5, "kernel_seconds": 5.2e-5},
            "events say 45.00 us, and CUPTI 60.00 us .* 4 kernels and copies, 52.00 us of them",
        ),
        (
            {"kernels": 2, "span_seconds": 5e-5, "kernel_seconds": 4.85e-5},
            "2 kernels and copies, 48.50 us of them",
        ),
        (
            {"median": 3.0e-5},
            r"invalid, no such speed is possible: 30.00 us, and its floor is 40.00 us \(moving "
            r"134,217,728 bytes at 3,352 GB/s\)",
        ),
        ({"median": 3.87e-5}, "invalid, .* its floor is 40.00 us"),
        ({"persisting": 1 << 22}, "it set 4,194,304 bytes of L2 aside for persisting lines"),
        (
            {"held": {"hardware thermal slowdown": [3, 4, 5]}, "clock_hz": (1.2e9, 1.98e9)},
            "throttled: hardware thermal slowdown in 3 of 20 samples, at 1200 to 1980 MHz",
        ),
        (
            {"kernels": 1, "span_seconds": 4.5e-5, "event_seconds": 6e-5},
            "events say 60.00 us, and CUPTI 45.00 us",
        ),
        (
            {"event_seconds": -1e-6, "fixed_seconds": 2.4e-6},
            "it reads 1.40 us, no more than an empty window",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(changes: dict[str, Any], reason: str) -> None:
    given = {**HONEST, **changes}
    if "median" in changes and "samples" not in changes:
        given["samples"] = [changes["median"]] * 20
    said = call_refuse(given)
    assert re.search(reason, said), said


def call_refuse(given: dict[str, Any]) -> str:
    given = dict(given)
    return refuse(given.pop("samples"), given.pop("median"), **given)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"late": 1},
        {"held": {"software power cap": list(range(20))}},  # how a card works: a note
        {"held": {"hardware slowdown": [3]}},  # labelled, and too few to count
        {"kernels": 1, "span_seconds": 9e-5, "event_seconds": 4.6e-5},
        {"kernels": 1, "span_seconds": 4.4e-5},
        {"kernels": 4, "span_seconds": 6e-5, "kernel_seconds": 4.4e-5},  # gaps that tracing makes
        {"kernels": 2, "span_seconds": 4.4e-5, "kernel_seconds": 8e-5},  # side by side
        {
            "kernels": 4,
            "span_seconds": 4.96e-5,
            "kernel_seconds": 4.84e-5,
        },  # each ends before the next
        {"kernels": 2, "span_seconds": 4.4e-6, "median": 5.1e-6, "floor": None},
        {"median": 1e-6, "samples": [1e-6] * 20, "fixed_seconds": 2.4e-6, "floor": None},
        {"median": 3.89e-5, "samples": [3.89e-5] * 20},  # clocks and counts are not exact
        {"floor": None, "median": 5e-6, "samples": [5e-6] * 20},
        {"null_seconds": None, "host_seconds": None, "floor": None},
    ],
)
def test_honest_times_are_not_refused(changes: dict[str, Any]) -> None:
    assert call_refuse({**HONEST, **changes}) == ""


# Times for people, and the CPU's clock


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (45.1e-6, "45.1 us"),
        (1.0, "1 s"),
        (0.0123456, "12.35 ms"),
        (3.2e-8, "32 ns"),
        (0.0, "0 ns"),
        (61.5, "61.5 s"),
    ],
)
def test_seconds_for_people(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("per_call", "restores", "calls"),
    [(1e-3, False, 1), (1e-4, False, 5), (0.0, False, 10_000), (1e-7, True, 1)],
)
def test_a_sample_holds_enough_calls(per_call: float, restores: bool, calls: int) -> None:
    assert cpu.calls_for(per_call, restores) == calls


def test_a_cpu_sample_is_seconds_a_call_without_the_restore() -> None:
    log: list[str] = []

    def call() -> None:
        log.append("call")
        time.sleep(0.002)

    def restore() -> None:
        log.append("restore")
        time.sleep(0.02)

    taken = cpu.Cpu(call, restore, 1).sample()
    assert log == ["restore", "call"]
    assert 0.002 <= taken < 0.02
    log.clear()
    taken = cpu.Cpu(call, None, 3).sample()
    assert log == ["call"] * 4, "one call outside the window"
    assert taken >= 0.002


# The GPU's clock, as far as it needs none


def stub(events: Any, answers: list[tuple[float, bool]], **given: Any) -> Any:
    class Stub(events.Events):
        def prepare(self) -> None:
            pass

        def timed(self) -> tuple[float, bool]:
            waits.append(self.wait)
            return answers.pop(0)

    waits: list[float] = []
    made = Stub(lambda: None, None, None, **given)
    made.waits = waits
    return made


def test_what_events_add_is_taken_off_every_sample() -> None:
    events = pytest.importorskip("assay.clock.events")
    clock = stub(events, [(5e-6, False), (7e-6, False)], host_seconds=1e-5, fixed=2e-6)
    assert [clock.sample(), clock.sample()] == pytest.approx([3e-6, 5e-6])
    longer = clock.unhurried()
    assert longer.wait == pytest.approx(4 * clock.wait)
    assert longer.fixed == clock.fixed


def test_a_late_sample_is_taken_again_behind_a_longer_wait() -> None:
    events = pytest.importorskip("assay.clock.events")
    clock = stub(events, [(9.0, True), (9.0, True), (1.0, False)], host_seconds=1e-5)
    assert clock.sample() == 1.0
    assert (clock.retaken, clock.late) == (2, 0)
    assert clock.waits[2] == pytest.approx(4 * clock.waits[0])
    assert clock.host_seconds == 1e-5, "what the host needs is what was measured"


def test_a_host_that_is_always_late_is_counted_and_its_wait_bounded() -> None:
    events = pytest.importorskip("assay.clock.events")
    clock = stub(events, [(9.0, True)] * events.TRIES, host_seconds=0.5)
    clock.sample()
    assert clock.late == 1
    assert max(clock.waits) <= events.MOST_SLEEP_SECONDS
    null = stub(events, [(9.0, True)] * events.TRIES, host_seconds=0.0)
    null.sample()
    assert null.waits[1] == 2 * null.waits[0] > 0
