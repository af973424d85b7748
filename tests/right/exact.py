"""Integers, booleans, bytes and complex numbers; several outputs of different dtypes."""

import torch

import assay

IDS = "V24 V8"


def inputs(make, n, dtype):
    return (make.integers(n, low=0, high=120, dtype=dtype),)


op = assay.Op(
    "exact",
    lambda x: (x + 1, x > 50, x.sum(), x.argmax()),
    inputs,
    cases=assay.grid(n=[1, 999], dtype=["int32", "int64", "uint8", "int8", "int16"]),
)


@op.launcher("eager/fills")
def fills(more, large, total, best, x):
    torch.add(x, 1, out=more)
    torch.gt(x, 50, out=large)
    total.copy_(x.to(torch.int64).flip(0).sum())
    best.copy_(x.argmax())


def flags(make, n):
    return make.booleans(n), make.booleans(n)


logic = assay.Op("logic", lambda a, b: a ^ b, flags, cases=assay.grid(n=[1, 70]))


@logic.variant("eager/not_equal")
def not_equal(a, b):
    return a != b


def bytes_inputs(make, n):
    return (make.integers(n, low=0, high=256, dtype="uint8"),)


inverted = assay.Op("inverted", lambda x: 255 - x, bytes_inputs, cases=assay.grid(n=[1 << 18]))


@inverted.launcher("eager/fills")
def invert(out, x):
    """Some right answers are bytes of poison in both runs; that makes them no less written."""
    torch.bitwise_not(x, out=out)


def complex_inputs(make, n):
    return (torch.complex(make.normal(n), make.normal(n)),)


turned = assay.Op("turned", lambda z: z.conj() * 1j, complex_inputs, cases=assay.grid(n=[33]))


@turned.variant("eager/lazy_conjugate")
def lazy_conjugate(z):
    return (z * -1j).conj()


@turned.variant("eager/parts")
def parts(z):
    return torch.complex(z.imag, z.real)
