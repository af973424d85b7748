"""Accesses side by side are one: vectors written as scalars, structs read member by member."""

from __future__ import annotations

import numpy as np

from assay.simt.code import Code, Site
from assay.simt.joining import NAMES, groups, joined
from assay.simt.results import Tally


def site(text: str, space: str = "global") -> Site:
    return Site((), text, space)


SITES = [
    site("st.global.f32 [%rd1], %f1;"),
    site("st.global.f32 [%rd1+4], %f2;"),
    site("st.global.v2.f32 [%rd1+8], {%f3, %f4};"),
    site("st.global.f32 [%rd1+4096], %f2;"),  # far away
    site("ld.global.f32 %f5, [%rd1+12];"),  # reads
    site("st.global.f32 [%rd2], %f1;"),  # of another place
    site("st.shared.f32 [%rd1+4], %f1;", "shared"),
]


def test_what_lies_side_by_side_is_one_group() -> None:
    assert groups(SITES) == [[0, 1, 2]]


def test_a_split_vector_uses_all_it_touches_and_a_stride_does_not() -> None:
    """Of 32 lanes: 16 bytes each in three parts; and one float each, 16 bytes apart."""
    numbers = np.zeros((len(SITES), len(NAMES)), dtype=np.uint64)
    sectors, ideal = NAMES.index("sectors"), NAMES.index("ideal_sectors")
    for at, own in ((0, 4), (1, 4), (2, 8), (5, 4)):
        numbers[at][[sectors, ideal]] = 16, own
    code = Code.__new__(Code)
    code.sites = SITES
    made = joined(Tally(code, numbers, np.zeros((0, 2)))).sites
    assert made[:3, sectors].sum() == made[:3, ideal].sum() == 16
    assert (made[5, sectors], made[5, ideal]) == (16, 4)
    assert numbers[:3, sectors].sum() == 48, "the tally it came from is as it was"
