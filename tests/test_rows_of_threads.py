"""How rows are given to threads: src/assay/ops/rows.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.ops.rows import LEAST, held, row_kind, spread

SIZES = st.sampled_from([2, 4, 8])
EACH = st.sampled_from([1, 2, 4, 8])


@given(
    n=st.integers(1, 40_000),
    size=SIZES,
    each=EACH,
    alone=EACH,
    room=st.sampled_from([(32, 1024), (16, 1024), (16, 512)]),
)
def test_a_row_that_is_held_fits_its_threads(
    n: int, size: int, each: int, alone: int, room: tuple[int, int]
) -> None:
    most, widest = room
    chosen = held(n, size, most, widest, each, alone)
    if chosen is None:
        assert n > widest * most // 2, "else it would be walked for nothing"
        return
    threads, vectors = chosen
    assert threads == 32 or LEAST <= threads <= widest
    assert threads & (threads - 1) == vectors & (vectors - 1) == 0, "powers of two"
    assert n <= threads * vectors * (16 // size)
    assert vectors * (16 // size) <= most


@given(n=st.integers(1, 40_000), size=SIZES)
def test_a_thread_has_no_more_vectors_than_wished(n: int, size: int) -> None:
    """Up to 512 threads: beyond, a thread of 1,024 would have half the registers."""
    threads, vectors = held(n, size, each=2) or (512, 0)
    assert vectors <= 2 or threads in (32, 512, 1024)


@given(
    rows=st.integers(1, 1 << 20),
    threads=st.sampled_from([32, 64, 128, 256, 512, 1024]),
    each=EACH,
    room=st.sampled_from([40 * 2048, 132 * 256, 132 * 2048]),
)
def test_few_rows_have_more_threads_that_hold_as_much(
    rows: int, threads: int, each: int, room: int
) -> None:
    more, fewer = spread(rows, threads, each, room)
    assert more * fewer == threads * each
    assert threads <= more <= 1024
    assert more == threads or rows * more <= room, "else some would wait for others"
    assert fewer == 1 or more == 1024 or 2 * rows * more > room, "as many as there is room for"


@pytest.mark.parametrize(
    ("n", "size", "threads", "each", "kind"),
    [
        (1024, 4, 128, 2, "FULL"),
        (1020, 4, 128, 2, "WHOLE"),
        (1021, 4, 128, 2, "ANY"),
        (1020, 2, 128, 1, "ANY"),
    ],
)
def test_what_is_known_of_a_row(n: int, size: int, threads: int, each: int, kind: str) -> None:
    assert row_kind(n, size, threads, each) == f"assay::Row::{kind}"
