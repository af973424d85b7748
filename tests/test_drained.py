"""Whose time is whose, in a trace of kernels that are each followed by a read."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

from benchmarks.drained import spans


def test_each_launch_has_its_kernels_and_the_read_after_it() -> None:
    read = "void at::native::reduce_kernel<512>"
    events = [
        (read, 0.0, 10.0),  # before the first: nobody's
        ("first", 11.0, 14.0),
        ("second half of first", 15.0, 18.0),
        (read, 18.0, 27.0),
        (read, 28.0, 29.0),
        ("second", 30.0, 33.0),
        (read, 34.0, 44.0),
    ]
    expected = [((11.0, 18.0), (18.0, 29.0)), ((30.0, 33.0), (34.0, 44.0))]
    assert list(spans(events[::-1])) == expected  # whatever order the trace is in


def test_what_no_read_follows_has_no_span() -> None:
    assert list(spans([("first", 0.0, 1.0)])) == []
