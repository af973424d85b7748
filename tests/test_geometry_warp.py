"""Sectors and banks of one access of a warp; offsets of layouts."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

from assay.errors import AssayError
from assay.inside.geometry.layout import NHWC, index, offset, strides
from assay.inside.geometry.warp import LANES, WIDTHS, WarpAccess, lines, strided


@pytest.mark.parametrize(
    ("width", "stride", "sectors", "passes"),
    [
        (4, 1, 4, 1),
        (4, 2, 8, 2),
        (4, 8, 32, 8),
        (4, 32, 32, 32),
        (4, 33, 32, 1),  # what a column of padding is for
        (4, 0, 1, 1),  # one word for all
        (2, 1, 2, 1),
        (1, 1, 1, 1),
        (8, 1, 8, 2),
        (16, 1, 16, 4),
        (8, 0, 1, 1),
    ],
)
def test_a_stride_has_its_sectors_and_passes(
    width: int, stride: int, sectors: int, passes: int
) -> None:
    found = strided(width, stride)
    assert (len(found.sectors), found.passes) == (sectors, passes)
    assert found.ideal_sectors == width
    assert found.ideal_passes == max(1, width * LANES // 128)


def test_a_start_between_sectors_takes_one_more() -> None:
    assert [len(strided(4, 1, start).sectors) for start in (0, 4, 28, 32)] == [4, 5, 5, 4]


def test_lanes_that_take_no_part_cost_nothing() -> None:
    half = WarpAccess(4, tuple(4 * i if i < 16 else None for i in range(32)))
    assert (half.sectors, half.ideal_sectors, half.passes) == ((0, 1), 2, 1)
    none = WarpAccess(4, (None,) * 32)
    assert (none.sectors, none.passes, none.ideal_sectors) == ((), 0, 0)


def test_neighbours_that_load_one_address_go_two_groups_at_a_time() -> None:
    pairs = tuple(8 * (i // 2) for i in range(32))
    assert WarpAccess(8, pairs).passes == 1
    assert WarpAccess(8, pairs, store=True).passes == 2


def test_random_accesses_against_a_count_byte_by_byte() -> None:
    draw = random.Random(3)
    for _ in range(200):
        width = draw.choice(WIDTHS)
        at = tuple(
            draw.choice([None, width * draw.randrange(200)]) if draw.random() < 0.3
            else width * draw.randrange(200) for _ in range(32)
        )  # fmt: skip
        found = WarpAccess(width, at, store=True)
        touched = {a + k for a in at if a is not None for k in range(width)}
        assert set(found.sectors) == {byte // 32 for byte in touched}
        banks = {b: len({byte // 4 for byte in touched if byte // 4 % 32 == b}) for b in range(32)}
        assert found.banks() == {b: n for b, n in banks.items() if n}
        size = 32 if width <= 4 else 128 // width
        total = 0
        for group in (at[i : i + size] for i in range(0, 32, size)):
            words = {(a + k) // 4 for a in group if a is not None for k in range(width)}
            total += max((len([w for w in words if w % 32 == b]) for b in range(32)), default=0)
        assert found.passes == total


def test_the_map_as_text() -> None:
    assert list(lines(strided(4, 8)))[:3] == [
        "32 lanes of 4 bytes: 32 sectors (ideal 4); 8 passes of shared memory (ideal 1)",
        "  sector      0  lanes 0",
        "  sector      1  lanes 1",
    ]
    assert list(lines(strided(4, 8)))[-1] == "  banks 0, 8, 16, 24: 8 words each"
    assert list(lines(strided(4, 1)))[-1] == "  sector      3  lanes 24-31"


@pytest.mark.parametrize(
    ("width", "addresses", "why"),
    [(3, (0,), "3 bytes a lane"), (4, (2,), "lane 0: address 2"), (4, (0,) * 33, "33 lanes")],
)
def test_what_is_no_access_is_refused(width: int, addresses: tuple[int, ...], why: str) -> None:
    with pytest.raises(AssayError, match=why):
        WarpAccess(width, addresses)


def test_the_24_numbers_of_4_by_2_by_3() -> None:
    shape = (4, 2, 3)
    assert strides(shape) == (6, 3, 1)
    numbers = [offset(i, strides(shape)) for i in itertools.product(*map(range, shape))]
    assert numbers == list(range(24))
    assert offset((3, 1, 2), strides(shape)) == 23
    assert [index(n, shape) for n in (0, 6, 11, 23)] == [(0, 0, 0), (1, 0, 0), (1, 1, 2), (3, 1, 2)]


def test_channels_last_is_torchs() -> None:
    shape = (2, 3, 4, 5)
    last = torch.empty(shape).contiguous(memory_format=torch.channels_last)
    assert strides(shape, NHWC) == last.stride() == (60, 1, 15, 3)
    assert strides(shape) == torch.empty(shape).stride()
    flat = torch.arange(120).reshape(2, 4, 5, 3).permute(0, 3, 1, 2)
    for n in range(120):
        where = index(n, shape, NHWC)
        assert flat[where] == n == offset(where, strides(shape, NHWC))
    with pytest.raises(AssayError, match="name each once"):
        strides(shape, (0, 1, 1, 2))
    with pytest.raises(AssayError, match="offset 120 of a tensor of 120 elements"):
        index(120, shape)
