"""Right values in a wrong form: `wrong shape` or `wrong dtype`, with what came and what was wanted.

Each would pass under broadcasting, or where dtypes are not looked at (V24).
"""

import torch

import assay

EXPECT = {
    "eager/column": ("wrong shape", "(8, 1), expected (8,)"),
    "eager/row": ("wrong shape", "(1, 8), expected (8,)"),
    "eager/one_element": ("wrong shape", "(), expected (8,)"),
    "eager/one_more": ("wrong shape", "(9,), expected (8,)"),
    "eager/two_outputs": ("wrong shape", "2 outputs, expected 1"),
    "eager/no_outputs": ("wrong shape", "0 outputs, expected 1"),
    "eager/float64": ("wrong dtype", "float64, expected float32"),
    "eager/bfloat16": ("wrong dtype", "bfloat16, expected float32"),
    "eager/integers": ("wrong dtype", "int32, expected float32"),
    "eager/bits": ("wrong dtype", "int32, expected float32"),
    "eager/complex": ("wrong dtype", "complex64, expected float32"),
    "eager/sparse": ("wrong dtype", "sparse"),
    "eager/lazy": ("wrong dtype", "a Lazy, expected a plain dense tensor"),
    "eager/nothing": ("wrong dtype", "NoneType"),
    "eager/a_list_of_numbers": ("wrong shape", "8 outputs, expected 1"),
    "python/float64": ("wrong dtype", "float64, expected float32"),
}
IDS = "V24"


def reference(x):
    return x.square()


def inputs(make, n):
    return (make.integers(n, low=1, high=9, dtype="float32"),)


op = assay.Op("forms", reference, inputs, cases=assay.grid(n=[8]))


@op.variant("eager/column")
def column(x):
    return reference(x)[:, None]


@op.variant("eager/row")
def row(x):
    return reference(x)[None]


@op.variant("eager/one_element")
def one_element(x):
    return reference(x)[0]


@op.variant("eager/one_more")
def one_more(x):
    return torch.cat([reference(x), x[:1]])


@op.variant("eager/two_outputs")
def two_outputs(x):
    return reference(x), reference(x)


@op.variant("eager/no_outputs")
def no_outputs(x):
    return ()


@op.variant("eager/float64")
def float64(x):
    return reference(x.double())


@op.variant("eager/bfloat16")
def bfloat16(x):
    return reference(x).bfloat16()


@op.variant("eager/integers")
def integers(x):
    return reference(x).int()


@op.variant("eager/bits")
def bits(x):
    return reference(x).view(torch.int32)


@op.variant("eager/complex")
def as_complex(x):
    return reference(x).to(torch.complex64)


@op.variant("eager/sparse")
def sparse(x):
    return reference(x).to_sparse()


class Lazy(torch.Tensor):
    """A tensor that could compute when it is looked at."""


@op.variant("eager/lazy")
def lazy(x):
    return reference(x).as_subclass(Lazy)


@op.variant("eager/nothing")
def nothing(x):
    reference(x)


@op.variant("eager/a_list_of_numbers")
def a_list_of_numbers(x):
    return reference(x).tolist()


@op.variant("python/float64")
def numpy_float64(x):
    return x.numpy().astype("float64") ** 2
