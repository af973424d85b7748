"""How rows are given to threads: src/assay/ops/rows.py."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assay.ops.rows import LEAST, held, row_kind, spread

SIZES = st.sampled_from([2, 4, 8])
EACH = st.sampled_from([1, 2, 4, 8])


@given(st.integers(1, 40_000), SIZES, EACH, EACH, st.sampled_from([8, 16, 32]))
def test_a_row_fits_the_threads_that_hold_it(
    n: int, size: int, each: int, alone: int, most: int
) -> None:
    width = 16 // size
    chosen = held(n, size, most, each=each, alone=alone)
    if chosen is None:
        assert n > 512 * most or most < width * each
        return
    threads, vectors = chosen
    assert threads == 32 or LEAST <= threads <= 1024
    assert threads & (threads - 1) == vectors & (vectors - 1) == 0
    assert n <= threads * vectors * width
    assert vectors * width <= most


@given(st.integers(1, 40_000), SIZES)
def test_a_block_has_few_vectors_a_thread_where_they_are_wished(n: int, size: int) -> None:
    threads, vectors = held(n, size, each=2) or (0, 0)
    assert vectors <= 2 or threads in (0, 32) or threads >= 512


@given(st.integers(1, 100_000), st.integers(5, 10), st.integers(0, 5), st.integers(0, 1 << 19))
def test_few_rows_are_spread_no_further_than_there_is_room(
    rows: int, threads: int, each: int, room: int
) -> None:
    wide, vectors = spread(rows, 1 << threads, 1 << each, room)
    assert wide * vectors == 1 << threads + each
    assert wide == 1 << threads or (rows * wide <= room and wide <= 1024)


def test_what_is_known_of_a_row() -> None:
    assert row_kind(1024, 4, 128, 2) == "assay::Row::FULL"
    assert row_kind(1020, 4, 128, 2) == "assay::Row::WHOLE"
    assert row_kind(1021, 4, 128, 2) == "assay::Row::ANY"
    assert row_kind(1020, 2, 128, 1) == "assay::Row::ANY"
