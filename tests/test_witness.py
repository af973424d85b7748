"""What CUPTI saw, read from traces: calls told apart by stream and order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clock.power import REASONS, Reading, summary, throttled
from assay.clock.witness import seen

ROUNDS = 3


def trace(*rounds: str) -> list[dict[str, Any]]:
    """Events of 1 us each, 1 us apart; a capital letter is one on another stream."""
    return [
        {"ts": 2.0 * i, "dur": 1.0, "name": name.lower(), "args": {"stream": 13 - name.islower()}}
        for i, name in enumerate("".join(rounds))
    ]


def test_the_calls_are_what_is_not_there_without_them() -> None:
    found = seen(len(trace("mf", "mf", "mf")), trace("mfab", "mfab", "mfab"), ROUNDS)
    assert (found.kernels, found.elsewhere, found.uneven) == (2, 0, "")
    assert found.seconds == pytest.approx([2e-6] * 3)
    assert found.spans == pytest.approx([3e-6] * 3), "the gap between two kernels belongs to it"


def test_work_on_another_stream_is_counted_and_not_timed() -> None:
    found = seen(len(trace("mf", "mf", "mf")), trace("mfaX", "mfaX", "mfXa"), ROUNDS)
    assert (found.kernels, found.elsewhere) == (2, 1)
    assert found.seconds == pytest.approx([1e-6] * 3)


def test_a_call_that_runs_nothing() -> None:
    found = seen(len(trace("mf", "mf", "mf")), trace("mf", "mf", "mf"), ROUNDS)
    assert (found.kernels, found.spans) == (0, ())


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        (("mfa", "mf", "mf"), "1 kernels and copies in 3 calls: not the same in each"),
        (("mfa", "mfaa", "mfa"), "4 kernels and copies in 3 calls"),
        (("mfaX", "mfa", "mfa"), "not the same in each"),
        (("mf", "m", "mf"), "not the same in each"),
    ],
)
def test_calls_that_cannot_be_told_apart_have_no_times(rounds: tuple[str, ...], said: str) -> None:
    found = seen(len(trace("mf", "mf", "mf")), trace(*rounds), ROUNDS)
    assert said in found.uneven
    assert found.spans == ()


def test_other_kernels_in_some_calls_are_told() -> None:
    found = seen(len(trace("mf", "mf", "mf")), trace("mfa", "mfb", "mfa"), ROUNDS)
    assert found.uneven == "other kernels in some calls"
    assert len(found.spans) == 3


@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3), st.integers(1, 5))
def test_counts_for_any_number_of_kernels(own: int, made: int, away: int, rounds: int) -> None:
    before = "m" + "f" * own
    found = seen(len(before) * rounds, trace(*[before + "a" * made + "X" * away] * rounds), rounds)
    assert (found.kernels, found.elsewhere) == (made + away, away)
    assert len(found.seconds) == rounds


def test_what_holds_the_clocks_down_is_named_with_its_share() -> None:
    readings = [Reading(1.98e9, 400.0, 50.0, 0x1), Reading(1.2e9, 700.0, 80.0, 0x4 | 0x40)]
    assert throttled(readings) == (
        "software power cap in 1 of 2 readings",
        "hardware thermal slowdown in 1 of 2 readings",
    )
    said = summary(readings)
    assert said["clock_hz"] == (1.2e9, 1.98e9)
    assert said["watts"] == (400.0, 700.0)
    assert not throttled([Reading(1.98e9, 1.0, 1.0, 0x1 | 0x2)]), "idle, and asked for"
    assert summary([])["clock_hz"] is None
    assert 0x1 not in REASONS
