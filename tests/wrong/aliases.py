"""Outputs in the memory of an input or of one another: `shares memory`, naming both (V15).

And several outputs of which only one is wrong: `wrong value` or `not written` names it (V8).
"""

import torch

import assay

EXPECT = {
    "eager/one_tensor_twice": ("shares memory", "output 1 lies in the memory of output 0"),
    "eager/overlapping_views": ("shares memory", "output 2 lies in the memory of output 0"),
    "eager/the_input": ("shares memory", "output 1 lies in the memory of x"),
    "eager/view_of_the_input": ("shares memory", "output 1 lies in the memory of x"),
    "python/the_input": ("shares memory", "output 1 lies in the memory of x"),
    "eager/first_wrong": ("wrong value", "output 0: every element"),
    "eager/middle_wrong": ("wrong value", "output 1: 1 of 64 elements"),
    "eager/last_wrong": ("wrong value", "output 2: 1 of 64 elements, worst at [63]"),
    "eager/swapped": ("wrong value", "output 0: "),
    "eager/middle_unwritten": ("not written", "64 of 64 elements of output 1"),
    "eager/beside_the_last": ("wrote outside", "1 value after the end of output 2"),
    "eager/two_of_three": ("wrong shape", "2 outputs, expected 3"),
    "eager/second_dtype": ("wrong dtype", "output 1: float64, expected float32"),
    "eager/third_shape": ("wrong shape", "output 2: (64, 1), expected (64,)"),
}
IDS = "V15 V8"


def reference(x):
    return x + 1, 1 * x, x.exp()


def inputs(make, n):
    return (make.normal(n),)


op = assay.Op("aliases", reference, inputs, cases=assay.grid(n=[64]))


@op.variant("eager/one_tensor_twice")
def one_tensor_twice(x):
    y = x + 1
    return y, y, x.exp()


@op.variant("eager/overlapping_views")
def overlapping_views(x):
    base = torch.empty(2 * len(x) - 1)
    return base[: len(x)].copy_(x + 1), 1 * x, base[len(x) - 1 :].copy_(x.exp())


@op.variant("eager/the_input")
def the_input(x):
    return x + 1, x, x.exp()


@op.variant("eager/view_of_the_input")
def view_of_the_input(x):
    return x + 1, x.view(-1, 1).squeeze(1), x.exp()


@op.variant("python/the_input")
def numpy_view_of_the_input(x):
    return x + 1, x.numpy(), x.exp()


@op.variant("eager/first_wrong")
def first_wrong(x):
    return x + 2, 1 * x, x.exp()


@op.variant("eager/middle_wrong")
def middle_wrong(x):
    y = x.clone()
    y[0] += 1
    return x + 1, y, x.exp()


@op.variant("eager/last_wrong")
def last_wrong(x):
    y = x.exp()
    y[-1] = 0
    return x + 1, 1 * x, y


@op.variant("eager/swapped")
def swapped(x):
    return 1 * x, x + 1, x.exp()


@op.launcher("eager/middle_unwritten")
def middle_unwritten(a, b, c, x):
    a.copy_(x + 1)
    c.copy_(x.exp())


@op.launcher("eager/beside_the_last")
def beside_the_last(a, b, c, x):
    for out, value in zip((a, b, c), reference(x)):
        out.copy_(value)
    c.as_strided((1,), (1,), c.storage_offset() + len(x)).fill_(0.0)


@op.variant("eager/two_of_three")
def two_of_three(x):
    return x + 1, 1 * x


@op.variant("eager/second_dtype")
def second_dtype(x):
    return x + 1, x.double(), x.exp()


@op.variant("eager/third_shape")
def third_shape(x):
    return x + 1, 1 * x, x.exp()[:, None]
