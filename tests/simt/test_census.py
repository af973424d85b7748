"""The instruction set against a census: the forms of 70 kernels by NVRTC, Triton, Numba, Inductor.

census.txt has each form with how often it occurs. It was taken of 31 PTX files (CUDA C++ with CUB
and cooperative groups, Triton for sm_80 and sm_90, Numba, Inductor) before any of this was written.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.simt.forms import table

CENSUS = {
    form: int(count)
    for form, count in (
        line.rsplit(" ", 1)
        for line in (Path(__file__).parent / "census.txt").read_text().splitlines()
    )
}
HOPPER = ("wgmma.", "tensormap.", "cp.async.bulk", "fence.proxy", "mbarrier.arrive.expect_tx")
"""Instructions that exist from sm_90 on only, and are not run here."""
EARLIER = {form: count for form, count in CENSUS.items() if not form.startswith(HOPPER)}


def test_every_opcode_before_hopper_is_known() -> None:
    opcodes = {form.split(".")[0] for form in EARLIER}
    assert len(opcodes) == 48
    known = {form.split(".")[0] for form in EARLIER if table().find(form)}
    assert opcodes - known == {"call"}  # replaced by the body that it calls: test_inline.py


def test_every_form_before_hopper_is_known() -> None:
    unknown = {form for form in EARLIER if table().find(form) is None}
    assert unknown == {"call.uni"}
    assert len(unknown) / len(EARLIER) < 0.05


@pytest.mark.parametrize("form", [form for form in CENSUS if form.startswith(HOPPER)])
def test_hopper_only_forms_are_refused(form: str) -> None:
    assert table().find(form) is None
