"""Gradients right for a contiguous grad_output, wrong for what torch.cat and a sum hand back.

Each is judged as a torch operator would call it: with grad_output in the layout that it comes in.
"""

import torch

import assay

EXPECT = {
    "eager/in_a_line": ("wrong gradient", "grad_output stride (0, 0): gradient of x"),
    "eager/rows_are_dense": ("wrong gradient", "grad_output stride (24, 2): gradient of x"),
    "eager/rows_follow_rows": ("wrong gradient", "grad_output stride (0, 1): gradient of x"),
    "python/in_a_line": ("wrong gradient", "grad_output stride (1, 8): gradient of x"),
}
IDS = "O5"
TWIN = {
    "eager/in_a_line": "eager/by_strides",
    "eager/rows_are_dense": "eager/by_strides",
    "eager/rows_follow_rows": "eager/by_strides",
    "python/in_a_line": "python/by_strides",
}
HOSTILE = True


def inputs(make, m, n):
    return (make.normal(m, n),)


op = assay.Op(
    "growth",
    lambda x: x.exp(),
    inputs,
    cases=assay.grid(m=[8], n=[12]),
    # Values and sizes are not what this is about.
    excludes=("size", "nan", "inf", "masked", "zeros", "equal", "wide", "huge", "tiny", "denormal"),
)
grad = op.gradient(
    lambda dy, y: dy * y,
    saves="y",
    wrt="x",
    excludes=("y:transposed", "y:stepped", "y:offset"),
)


def read(dy, strides):
    """The elements that a kernel sees that takes its strides for these."""
    return dy.as_strided(dy.shape, strides, dy.storage_offset())


@grad.variant("eager/by_strides", layouts="any")
def by_strides(dy, y):
    return read(dy, dy.stride()) * y


@grad.variant("eager/in_a_line", layouts="any")
def in_a_line(dy, y):
    return read(dy, (dy.shape[1], 1)) * y


@grad.variant("eager/rows_are_dense", layouts="any")
def rows_are_dense(dy, y):
    return read(dy, (dy.stride(0), 1)) * y


@grad.variant("eager/rows_follow_rows", layouts="any")
def rows_follow_rows(dy, y):
    return read(dy, (dy.shape[1] * dy.stride(1), dy.stride(1))) * y


@grad.variant("eager/contiguous_first")
def contiguous_first(dy, y):
    """The same reader, given what it takes: without layouts="any", dy comes contiguous."""
    return read(dy, (dy.shape[1], 1)) * read(y, (dy.shape[1], 1))


@grad.variant("python/by_strides", layouts="any")
def numpy_by_strides(dy, y):
    return torch.from_numpy(dy.numpy() * y.numpy())


@grad.variant("python/in_a_line", layouts="any")
def numpy_in_a_line(dy, y):
    return torch.from_numpy(read(dy, (dy.shape[1], 1)).numpy() * y.numpy())
