"""Each layer, forward and backward, in every back end against float64; and that a fault is seen."""

from __future__ import annotations

import pytest
from tiers import tier

from assay.mnist.model import LAYERS, LOSS

MODULES = ("conv2d", "batchnorm2d", "relu", "maxpool2d", "linear", "cross_entropy", "training")
WRITTEN = ("cpp", "cuda/naive")


def test_the_modules_are_those_of_the_network():
    used = {layer.op.name for layer in (*LAYERS, LOSS)}
    assert used == set(MODULES) - {"training"}


@pytest.mark.parametrize(
    "module",
    [pytest.param(name, marks=tier(name, (), ("conv2d", "batchnorm2d"))) for name in MODULES],
)
def test_a_layer_is_right_on_the_cpu(judge, module):
    rows = judge(f"assay.mnist.layers.{module}", variants=("cpp",))
    names = {"load_batch", "sgd_step"} if module == "training" else {module, f"{module}_grad"}
    assert {row.op for row in rows} == names
    assert {(row.variant, row.word, row.reason) for row in rows} == {("cpp", "right", "")}


@pytest.mark.full
def test_a_layer_of_the_gpu_is_right_by_its_compiled_code(judge):
    """One of them: the rest is in the complete set, where every kernel is translated and run."""
    rows = judge("assay.mnist.layers.maxpool2d", variants=("cuda/naive",), case={"planes": 3})
    assert [(row.op, row.word) for row in rows] == [
        ("maxpool2d", "right"),
        ("maxpool2d_grad", "right"),
    ]
    assert all(row.verdict.judge == "sm_90" for row in rows)


@pytest.mark.gallery
@pytest.mark.parametrize("module", MODULES)
def test_a_layer_is_right_in_every_back_end_on_hostile_inputs_too(judge, module):
    rows = judge(f"assay.mnist.layers.{module}", variants=WRITTEN, zoo=True)
    failed = [row for row in rows if row.outcome == "fail"]
    assert not [(row.op, row.variant, row.case.label, row.word) for row in failed]
    declared = {(row.op, row.variant, row.word) for row in rows if not row.case.zoo}
    assert declared == {(op, way, "right") for op in {row.op for row in rows} for way in WRITTEN}
    assert sum(bool(row.case.zoo) and row.word == "right" for row in rows) > 20


FAULTY = '''
"""The pooling of the network, with a gradient that goes to the last of equal values."""
import torch
from assay.mnist.layers.maxpool2d import maxpool2d_grad


@maxpool2d_grad.variant("eager/last")
def last(dy, x):
    size = x.shape
    turned = maxpool2d_grad.reference(dy.flip(-1, -2), x.flip(-1, -2))
    return turned.flip(-1, -2).contiguous()
'''


def test_a_gradient_that_goes_to_the_last_of_equal_values_is_wrong(judge):
    rows = judge(FAULTY, variants=("eager/last",), case={"h": 28})
    assert [row.word for row in rows] == ["wrong gradient"]
