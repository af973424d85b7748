"""Tensor-core forms: every form of the table against products computed in NumPy.

Fragments are laid out by formulas of their own (tensor/fragments.py); matrices of wmma are compared
as matrices, since PTX leaves their fragments open. Floats: the result must be the exact product
rounded as `runtime/tensor.h` says, which leaves it at most one last bit of S away.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from tensor import fragments, matrices
from tensor.kernels import HEAD, READ, WRITTEN, mma_kernel, shares
from tensor.products import (
    BITS,
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

pytestmark = pytest.mark.full

TRIALS = 4
FORMS = sorted({form for row in tensor.FORMS for form in options(row.pattern)})
MMA = [product(form) for form in FORMS if form.startswith("mma.")]
WMMA = [product(form) for form in FORMS if form.startswith("wmma.mma") and ".row.row." in form]
Operands = tuple[np.ndarray, np.ndarray, np.ndarray]


def operands(form: Product, rng: np.random.Generator) -> Operands:
    """TRIALS of each: random numbers, sums that nearly vanish, and any bits whatever: subnormals,
    infinities, NaN (f64: numbers, since any bits would be out of every range)."""
    m, n, k = form.shape
    sides = ((form.a, (m, k)), (form.b, (k, n)), (form.c, (m, n)))
    plain = [random_bits(rng, kind, (2, *shape)) for kind, shape in sides]
    hard = cancelling(rng, form, 1)
    wild = [
        random_bits(rng, kind, (1, *shape))
        if kind == "f64"
        else rng.integers(0, 1 << BITS[kind], (1, *shape), dtype=np.uint64)
        for kind, shape in sides
    ]
    a, b, c = (np.concatenate(three) for three in zip(plain, hard, wild, strict=True))
    if form.whole:  # some sums at the limits
        c[0, :, :2] = 0x7FFFFFFF
        c[0, :, 2:4] = 0x80000000
    elif form.d != "f64":  # of the last trial, some rows are small or without infinity and NaN
        rows = slice(0, m // 2)
        a[3, rows] = random_bits(rng, form.a, (m // 2, k), spread=6 if BITS[form.a] > 8 else 2)
        b[3, :, 0] = random_bits(rng, form.b, (k,))
        c[3, rows, 0] = 0
        a[3, 1] = 1  # the least subnormal
        b[3, :, 1] = 1
        c[3, 1, :2] = 1
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


NAN = {"f32": 0x7FFFFFFF, "f16": 0x7FFF}


def check(form: Product, got: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """That D's bits are what the runtime promises."""
    with np.errstate(invalid="ignore", over="ignore"):
        found, wanted = values(got, form.d), exact(form, a, b, c)
        size = weight(form, a, b, c)
        nearest = wanted.astype(np.float64).astype(np.float16)
    if form.whole:
        np.testing.assert_array_equal(found, wanted)
        return
    if form.d == "f64":
        assert np.all(np.abs(found - wanted) <= (form.shape[2] + 1) * 2.0**-53 * size)
        return
    lost = np.isnan(wanted)
    assert np.all(got[lost] == NAN[form.d])
    assert not np.isnan(found[~lost]).any()
    if form.d == "f16":
        np.testing.assert_array_equal(found[~lost], nearest[~lost].astype(np.float64))
        return
    beyond = ~lost & (np.abs(wanted) >= 2.0**128)
    np.testing.assert_array_equal(found[beyond], np.sign(wanted[beyond]) * np.inf)
    fits = ~lost & ~beyond
    found, wanted, size = found[fits], wanted[fits], size[fits]
    # Toward zero: no further from zero than the sum, and less than a last bit short of it. The
    # sum itself is that of f64's.
    slack = (form.shape[2] + 1) * 2.0**-52 * size
    step = np.spacing(np.abs(found).astype(np.float32)).astype(np.float64)
    short = np.where(found == 0, np.abs(wanted), (wanted - found) * np.sign(found))
    assert np.all((short >= -slack) & (short <= step + slack))


@lru_cache
def run_mma() -> dict[str, tuple[np.ndarray, Operands]]:
    """Form -> (bits of D, operands), of one kernel that runs them all."""
    rng = np.random.default_rng(1)
    inputs = [operands(form, rng) for form in MMA]
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
        for place, bits in zip(run.places, operands(run.form, rng), strict=False):
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
