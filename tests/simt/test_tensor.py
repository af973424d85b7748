"""Tensor-core forms: every form of the table against products computed in NumPy.

Fragments are laid out by formulas of their own (tensor/fragments.py); matrices of wmma are compared
as matrices, since PTX leaves their fragments open. Floats: the result must be the exact product
rounded as `runtime/tensor.h` says, which leaves it at most one last bit of S away.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pytest
from tensor import fragments, matrices
from tensor.kernels import HEAD, READ, WRITTEN, mma_kernel, shares
from tensor.products import (
    BITS,
    LAST,
    Product,
    cancelling,
    exact,
    product,
    random_bits,
    values,
    weight,
)

import assay.simt as simt
from assay.simt.forms import tensor
from assay.simt.forms.table import options

TRIALS = 4
FORMS = sorted({form for row in tensor.FORMS for form in options(row.pattern)})
MMA = [product(form) for form in FORMS if form.startswith("mma.")]
WMMA = [product(form) for form in FORMS if form.startswith("wmma.mma") and ".row.row." in form]
Operands = tuple[np.ndarray, np.ndarray, np.ndarray]


def operands(form: Product, rng: np.random.Generator, count: int) -> Operands:
    """Random ones for half of the trials, and sums that nearly vanish for the others."""
    m, n, k = form.shape
    half = count // 2
    shapes = ((form.a, (m, k)), (form.b, (k, n)), (form.c, (m, n)))
    plain = [random_bits(rng, kind, (half, *shape)) for kind, shape in shapes]
    hard = cancelling(rng, form, count - half)
    a, b, c = (np.concatenate(pair) for pair in zip(plain, hard, strict=True))
    if form.whole:  # some sums at the limits
        c[0, :, :2] = 0x7FFFFFFF
        c[0, :, 2:4] = 0x80000000
    return a, b, c


def fragment(form: Product, bits: np.ndarray, use: str) -> np.ndarray:
    m, _, k = form.shape
    if use == "a":
        return fragments.put(bits, fragments.A[m, k, BITS[form.a]], BITS[form.a])
    if use == "b":
        return fragments.put(bits, fragments.B[k, BITS[form.b]], BITS[form.b])
    return fragments.put(bits, fragments.C[m], BITS[form.c])


def results(form: Product, registers: np.ndarray) -> np.ndarray:
    m, n, _ = form.shape
    return fragments.take(registers, fragments.C[m], BITS[form.d], m, n)


def check(form: Product, got: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """That D's bits are what the runtime promises."""
    found, wanted = values(got, form.d), exact(form, a, b, c)
    if form.whole:
        np.testing.assert_array_equal(found, wanted)
        return
    size = weight(form, a, b, c)
    if form.d == "f64":
        assert np.all(np.abs(found - wanted) <= (form.shape[2] + 1) * 2.0**-53 * size)
        return
    if form.d == "f16":
        nearest = wanted.astype(np.float64).astype(np.float16)
        np.testing.assert_array_equal(found, nearest.astype(np.float64))
        return
    # Toward zero: no further from zero than the sum, and less than a last bit short of it. The
    # sum itself is that of f64's.
    slack = (form.shape[2] + 1) * 2.0**-52 * size
    step = np.spacing(np.abs(found).astype(np.float32)).astype(np.float64)
    short = (np.abs(wanted) - np.abs(found)).astype(np.float64)
    assert np.all((short >= -slack) & (short <= step + slack))
    assert np.all((np.sign(found) == np.sign(wanted)) | (np.abs(wanted) <= slack + step))


@lru_cache
def run_mma() -> dict[str, tuple[np.ndarray, Operands]]:
    """Form -> (bits of D, operands), of one kernel that runs them all."""
    rng = np.random.default_rng(1)
    inputs = [operands(form, rng, TRIALS) for form in MMA]
    memory = np.zeros((len(MMA), TRIALS, READ, 32), np.uint64)
    for place, form, three in zip(memory, MMA, inputs, strict=True):
        packed = [fragment(form, bits, use) for bits, use in zip(three, "abc", strict=True)]
        registers = np.concatenate(packed, axis=1)
        place[:, : registers.shape[1]] = registers
    out = np.zeros((len(MMA), TRIALS, WRITTEN, 32), np.uint64)
    which = np.repeat(np.arange(len(MMA), dtype=np.uint32), TRIALS)
    kernel = simt.load(HEAD + mma_kernel(MMA), entry="k")
    run = kernel.launch(grid=(len(which), 1, 1), block=(32, 1, 1), args=[memory, out, which])
    assert run.faults == ()
    return {
        form.form: (results(form, got[:, : shares(form)[0][1]]), three)
        for form, got, three in zip(MMA, out, inputs, strict=True)
    }


@pytest.mark.parametrize("form", MMA, ids=lambda form: form.form)
def test_mma(form: Product) -> None:
    got, three = run_mma()[form.form]
    check(form, got, *three)


RUNS = matrices.runs_of(WMMA)


@lru_cache
def run_wmma() -> np.ndarray:
    """[runs, trials, bytes] of memory after one kernel has done all runs."""
    rng = np.random.default_rng(2)
    memory = np.zeros((len(RUNS), TRIALS, matrices.STRETCH), np.uint8)
    for run, trials in zip(RUNS, memory, strict=True):
        for place, bits in zip(run.places, operands(run.form, rng, TRIALS), strict=False):
            for trial, its in zip(trials, bits, strict=True):
                place.view(trial)[...] = its
    table = np.repeat(matrices.table_of(RUNS), TRIALS, axis=0)
    kernel = simt.load(HEAD + matrices.wmma_kernel(RUNS), entry="w")
    launched = kernel.launch(grid=(len(table), 1, 1), block=(32, 1, 1), args=[memory, table])
    assert launched.faults == ()
    return memory


@pytest.mark.parametrize("form", WMMA, ids=lambda form: form.form)
def test_wmma(form: Product) -> None:
    rest = form.form.split(".")[6:]
    runs = [i for i, run in enumerate(RUNS) if run.form.form.split(".")[6:] == rest]
    assert len(runs) == 8
    for i in runs:
        for trial in run_wmma()[i]:
            a, b, c, d = (place.view(trial) for place in RUNS[i].places)
            check(RUNS[i].form, d, a, b, c)


def test_every_form_is_tested() -> None:
    tested = {form.form for form in MMA} | {form for run in RUNS for form in run.forms}
    assert sorted(tested) == FORMS
