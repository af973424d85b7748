"""Arithmetic below the declared class: `lower precision`, or `wrong value` where it adds up.

V20, V21.
"""

import torch

import assay

EXPECT = {
    "eager/tf32": ("lower precision", "looks like tf32, declared float32"),
    "eager/bfloat16": ("lower precision", "looks like bfloat16, declared float32"),
    "eager/float16": ("lower precision", "looks like float16, declared float32"),
    "eager/running_sum": ("wrong value", "256, expected"),
    "eager/running_sum_of_rows": ("wrong value", "every element"),
    "eager/no_maximum": ("wrong value", "NaN where the reference has none"),
}
IDS = "V20 V21"
TWIN = {
    "eager/tf32": "eager/declared_tf32",
}


def product_reference(a, b):
    return a @ b


def product_inputs(make, n):
    return make.normal(n, n), make.normal(n, n)


product = assay.Op("product", product_reference, product_inputs, cases=assay.grid(n=[64]))


def to_tf32(x):
    """Rounded to 10 bits of mantissa, as a tensor core reads float32."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


@product.variant("eager/tf32")
def tf32(a, b):
    return to_tf32(a) @ to_tf32(b)


@product.variant("eager/bfloat16")
def bfloat16(a, b):
    return (a.bfloat16() @ b.bfloat16()).float()


@product.variant("eager/float16")
def float16(a, b):
    return (a.half() @ b.half()).float()


@product.variant("eager/declared_tf32", precision="tf32")
def declared_tf32(a, b):
    """Right: judged against the class that it declares."""
    return to_tf32(a) @ to_tf32(b)


def ones_inputs(make, n):
    return (make.full(n, value=1, dtype="bfloat16"),)


ones = assay.Op("ones", lambda x: x.sum(), ones_inputs, cases=assay.grid(n=[1024, 4096]))


@ones.variant("eager/running_sum")
def running_sum(x):
    total = torch.zeros((), dtype=x.dtype)
    for value in x:
        total = total + value
    return total


def rows_inputs(make, n):
    return (make.uniform(8, n, dtype="bfloat16"),)


rows = assay.Op("rows", lambda x: x.sum(-1), rows_inputs, cases=assay.grid(n=[1024]))


@rows.variant("eager/running_sum_of_rows")
def running_sum_of_rows(x):
    total = torch.zeros(len(x), dtype=x.dtype)
    for column in x.t():
        total = total + column
    return total


def large_inputs(make, n):
    return (make.normal(4, n, std=50),)


softmax = assay.Op(
    "softmax_large", lambda x: torch.softmax(x, -1), large_inputs, cases=assay.grid(n=[100])
)


@softmax.variant("eager/no_maximum")
def no_maximum(x):
    e = x.exp()
    return e / e.sum(-1, keepdim=True)
