"""The verdict against its enemies: all of `wrong/` is named, none of `right/` accused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiers import tier

from assay.selftest import judging, zoo

HERE = Path(__file__).parent
PLAIN = {
    "wrong": "aliases forms integers layouts memory repeats values watched"
    " specials unmasked_triton",
    "right": "empty steps triton_in_place",
}
"""Some of each zoo, of every kind; the others are judged by `make test-full`."""
SLOW = {
    "wrong": "rows_numba rows_triton hostile_values cheats_cpp gradients order_cuda partial"
    " accuracy hostile_cuda gemm_cuda",
    "right": "accuracy numba_right rows_triton unusual sums_cuda scalars cpp_right in_place"
    " specials exact layouts gradients sums softmax limits fused",
}
"""Those that take the longest: by `make test-gallery`, and by `assay selftest verdict`."""


def samples(kind: str) -> list[object]:
    plain, slow = PLAIN[kind].split(), SLOW[kind].split()
    return [
        pytest.param(sample, id=sample.path.stem, marks=tier(sample.path.stem, plain, slow))
        for sample in zoo.samples(kind, HERE)
    ]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sample", samples("wrong"))
def test_every_wrong_kernel_is_named_and_no_other_is_touched(session, sample):
    score = judging.judged(session, sample)
    labels = {row.label for row in score.rows}
    assert sample.expect
    assert set(sample.expect) < labels  # each is there, and right ones beside them
    assert not score.misses, "\n" + "\n".join(miss.text for miss in score.misses)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sample", samples("right"))
def test_no_right_kernel_is_accused(session, sample):
    score = judging.judged(session, sample)
    assert not score.misses, "\n" + "\n".join(miss.text for miss in score.misses)
    assert any(row.variant != "eager" for row in score.rows)
