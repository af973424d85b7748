"""bmm with the tiles of large products: the zoo's own are small, and get the small tiles."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest
import torch

from assay import hardware
from assay.types import Row

KINDS = ("cuda/tiled", "cuda/tensor", "triton")
LARGE = """
import importlib

module = importlib.import_module("assay.ops.bmm")
module.fills = lambda y: True
bmm, bmm_grad = module.bmm, module.bmm_grad
"""


@pytest.mark.gallery
@pytest.mark.timeout(900)
@pytest.mark.parametrize("op", ["bmm", "bmm_grad"])
def test_large_tiles_are_right_on_hostile_inputs(judge: Callable[..., list[Row]], op: str) -> None:
    case = {"batch": 3, "m": 17, "n": 9, "k": 33, "dtype": "float16"}
    rows = [
        row
        for row in judge(LARGE, zoo=True, case=case, variants=KINDS)
        if row.op == op and row.variant in KINDS
    ]
    assert sum(row.case.zoo != "" for row in rows if row.word == "right") > 50
    assert {row.word for row in rows} == {"right"}, [row.reason for row in rows if row.reason]
    names = {k.name for row in rows if row.counters is not None for k in row.counters.kernels}
    assert {name.split("<")[0] for name in names} == {"bmm_tiled", "bmm_tensor"}
    assert all(", 128, " in name for name in names), names


def test_declared_cases_get_large_tiles_on_every_card(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("assay.ops.bmm")
    most = max(hardware.MULTIPROCESSORS.values())
    monkeypatch.setattr(module, "multiprocessors", lambda y: most)
    cases = [case.values for case in module.bmm.cases]
    found = {
        case["dtype"]
        for case in cases
        if module.fills(torch.empty(*(case[name] for name in ("batch", "m", "n")), device="meta"))
    }
    assert found == {"float32", "float16", "bfloat16"}
