"""Inputs changed by declaration: by a launcher, by a function, and by the reference itself."""

import assay

IDS = "V13"


def reference(x, w):
    x *= w
    return x


def inputs(make, n, dtype):
    return make.normal(n, dtype=dtype), make.normal(n, dtype=dtype)


op = assay.Op(
    "scaled_in_place",
    reference,
    inputs,
    mutates="x",
    cases=assay.grid(n=[1, 64], dtype=["float32", "float64", "bfloat16"]),
)


@op.launcher("eager/fills")
def fills(x, w):
    x.mul_(w)


@op.variant("eager/returns_nothing")
def returns_nothing(x, w):
    x.copy_(w * x)


pure = assay.Op(
    "scaled_purely",
    lambda x, w: (x * w, (x * w).sum()),
    inputs,
    mutates=("x",),
    cases=assay.grid(n=[64], dtype=["float32"]),
)


@pure.launcher("eager/fills")
def fills_too(total, x, w):
    x.mul_(w)
    total.copy_(x.sum())


@pure.variant("eager/returns_the_rest")
def returns_the_rest(x, w):
    x.mul_(w)
    return x.sum()
