"""Whose time is whose where each kernel is followed by a read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("triton")

from assay.clock.witness import Seen, Witness
from benchmarks.drained import measured


class Clock(Witness):
    """Times calls by a list that they write to: a kernel of 3 us, and a read of 9."""

    def __init__(self, ran: list[float], uneven: str = ""):
        self._ran, self._uneven, self.missing = ran, uneven, ""

    def watch(self, prepare: Callable[[], None], call: Callable[[], None]) -> Seen | None:
        prepare()
        self._ran.clear()  # what comes before a call is nobody's
        call()
        return Seen(len(self._ran), 0, (), (1e-6 * sum(self._ran),), self._uneven)


def test_each_launch_has_its_own_time_and_that_with_the_read_after_it() -> None:
    ran: list[float] = []
    calls = {"first": lambda: ran.append(3.0), "second": lambda: ran.extend((1.0, 4.0))}
    found = measured(Clock(ran), lambda: ran.append(9.0), calls, 2)
    assert found["first"] == pytest.approx({"itself": 3.0, "both": 12.0})
    assert found["second"] == pytest.approx({"itself": 5.0, "both": 14.0})


def test_calls_that_differ_have_no_time() -> None:
    ran: list[float] = []
    with pytest.raises(RuntimeError, match="copy: not the same in each"):
        measured(Clock(ran, "not the same in each"), int, {"copy": int}, 1)
