"""A kernel that says it takes any layout and assumes a contiguous one: `wrong value` (I5).

A sliced input's holes belong to nobody: a store there is `wrote outside`.
"""

import torch

import assay

EXPECT = {
    "eager/assumes_contiguous": ("wrong value", "elements"),
    "eager/writes_into_the_holes": ("wrote outside", "1 value between the values of x"),
    "eager/writes_row_by_row": ("not written", "of output 0"),
}
IDS = "I5 V12"
TWIN = {
    "eager/assumes_contiguous": "eager/contiguous",
}


def inputs(make, n):
    return (make.normal(n, 2 * n)[:, ::2],)


op = assay.Op("doubled", lambda x: 2 * x, inputs, cases=assay.grid(n=[12]))


def flat(x):
    return x.as_strided(x.shape, (x.shape[1], 1), x.storage_offset())


@op.variant("eager/assumes_contiguous", layouts="any")
def assumes_contiguous(x):
    return 2 * flat(x)


@op.variant("eager/contiguous")
def contiguous(x):
    """Right: without the declaration it gets a contiguous copy."""
    return 2 * flat(x)


@op.launcher("eager/writes_into_the_holes", layouts="any")
def writes_into_the_holes(out, x):
    out.copy_(2 * x)
    x.as_strided((1,), (1,), x.storage_offset() + 1).fill_(1.0)


@op.launcher("eager/writes_row_by_row")
def writes_row_by_row(out, x):
    torch.mul(x[:, :-1], 2, out=out[:, :-1])
