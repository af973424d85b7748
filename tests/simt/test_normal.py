"""The normal distribution of include/normal.cuh: as close to the truth as its comments say."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from compiling import compiled

import assay.simt as simt

OPS = Path(simt.__file__).parents[1] / "ops"
INCLUDE = OPS.parent / "include"


@pytest.mark.parametrize(
    ("least", "most", "apart"), [(0.0, 1.0, 3.6e-7), (1.0, 13.0, 8.6e-7), (-6.0, -1e-9, 3.6e-7)]
)
def test_gelu_in_float_keeps_its_digits_in_the_tail(
    least: float, most: float, apart: float
) -> None:
    """Of -v Phi(-v) for v from `least` to `most`, relative to itself; erf would lose all of them.

    `apart`: what normal.cuh says of Phi, and two roundings: of the product, and of 1 - Phi.
    """
    name = "assay::map1<Gelu, float, 128, 1>"
    source = OPS / "activations" / "activations.cu"
    ptx, names = compiled(source, (name,), (f"-I{INCLUDE}",))
    x = -np.linspace(least, most, 4096, dtype=np.float32)
    y = np.zeros_like(x)
    ran = simt.load(ptx, entry=names[name]).launch((8,), (128,), [y, x, x.size])
    assert not ran.faults
    true = np.array([v * math.erfc(-v / math.sqrt(2)) / 2 for v in x.astype(np.float64)])
    wrong = np.abs(y - true)
    large = np.abs(true) > 1e-37
    assert large.mean() > 0.9
    assert (wrong[large] / np.abs(true[large])).max() < apart
    assert wrong[~large].max(initial=0.0) < 1e-37
