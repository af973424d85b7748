"""Answers that only a budget tells: of the size of the output, and growing with its sums.

Zeros for a softmax whose every value is tiny (V1); a GELU that is NaN from 10.07 on, with the
input named (V7); sums whose running total is kept in 16 bits (V21); arithmetic that is coarser
than declared (V20, V22).
"""

import torch

import assay

EXPECT = {
    "eager/zeros_for_tiny": ("wrong value", "; first at [0, 0]"),
    "eager/exponentials": ("wrong value", "nan, expected "),
    "eager/overflows_at_11": ("wrong value", "nan, expected 11; there x = 11"),
    "eager/total_in_bfloat16": ("wrong value", "adds up in bfloat16: error grows with n"),
    "eager/total_in_float16": ("wrong value", "adds up in float16: error grows with n"),
    "eager/blocks_in_bfloat16": ("wrong value", "off by"),
    "eager/bfloat16_operands": ("lower precision", "looks like bfloat16 products"),
    "eager/tf32_operands": ("lower precision", "looks like tf32, declared float32"),
    "eager/half_loads": ("lower precision", "looks like float16 inputs, declared float32"),
    "eager/approximate_division": ("lower precision", "looks like fast-math, declared float32"),
    "eager/single": ("lower precision", "looks like float32, declared float64"),
    "eager/three_allowances": ("wrong value", "every element"),
}
IDS = {
    "eager/zeros_for_tiny": "V1",
    "eager/exponentials": "V7",
    "eager/overflows_at_11": "V7",
    "eager/total_in_bfloat16": "V21",
    "eager/total_in_float16": "V21",
    "eager/blocks_in_bfloat16": "V21",
    "eager/bfloat16_operands": "V20",
    "eager/tf32_operands": "V20",
    "eager/half_loads": "V20",
    "eager/approximate_division": "V22",
    "eager/single": "V20",
    "eager/three_allowances": "V6",
}


def tiny_inputs(make, n, dtype):
    return (make.normal(4, n, dtype=dtype),)


softmax = assay.Op(
    "softmax_tiny",
    lambda x: torch.softmax(x, -1),
    tiny_inputs,
    cases=assay.grid(n=[65_536], dtype=["bfloat16"]),
)


@softmax.variant("eager/zeros_for_tiny")
def zeros_for_tiny(x):
    return torch.zeros_like(x)


def gelu_reference(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def gelu_inputs(make, n):
    x = make.uniform(n, low=-8, high=8)
    x[5] = 11
    return (x,)


gelu = assay.Op("gelu", gelu_reference, gelu_inputs, cases=assay.grid(n=[100]))


@gelu.variant("eager/overflows_at_11")
def overflows_at_11(x):
    """tanh(a) as (e^2a - 1) / (e^2a + 1) is inf / inf from x = 10.07 on."""
    e = torch.exp(2 * 0.7978845608028654 * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + (e - 1) / (e + 1))


def wide_inputs(make, n):
    return (make.uniform(n, low=-4, high=14),)


wide = assay.Op("gelu_large", gelu_reference, wide_inputs, cases=assay.grid(n=[64]))


@wide.variant("eager/exponentials")
def exponentials(x):
    e = torch.exp(2 * 0.7978845608028654 * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + (e - 1) / (e + 1))


def rows_inputs(make, n, dtype):
    return (make.uniform(16, n, dtype=dtype),)


def cases_16(dtype):
    return assay.grid(n=[257, 1024, 4096], dtype=[dtype])


def running(x, dtype):
    total = torch.zeros(len(x), dtype=dtype)
    for column in x.to(dtype).t():
        total = total + column
    return total


sums = assay.Op("sums_bfloat16", lambda x: x.sum(-1), rows_inputs, cases=cases_16("bfloat16"))


@sums.variant("eager/total_in_bfloat16")
def total_in_bfloat16(x):
    return running(x, torch.bfloat16)


@sums.variant("eager/blocks_in_bfloat16")
def blocks_in_bfloat16(x):
    """Two running totals, added up at the end."""
    parts = [running(part.contiguous(), torch.bfloat16) for part in x.chunk(2, -1)]
    return parts[0] + parts[1]


half = assay.Op("sums_float16", lambda x: x.sum(-1), rows_inputs, cases=cases_16("float16"))


@half.variant("eager/total_in_float16")
def total_in_float16(x):
    return running(x, torch.float16)


def product_inputs(make, n):
    return make.normal(n, n), make.normal(n, n)


product = assay.Op("products", lambda a, b: a @ b, product_inputs, cases=assay.grid(n=[96]))


@product.variant("eager/bfloat16_operands")
def bfloat16_operands(a, b):
    """A tensor core takes 16 bits and adds up in float32."""
    return a.bfloat16().float() @ b.bfloat16().float()


@product.variant("eager/tf32_operands")
def tf32_operands(a, b):
    low = [((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32) for x in (a, b)]
    return low[0] @ low[1]


def plain_inputs(make, n):
    return make.uniform(n, low=0.5, high=2.0), make.uniform(n, low=0.5, high=2.0)


ratio = assay.Op("ratio", lambda a, b: torch.exp(a) / b, plain_inputs, cases=assay.grid(n=[2000]))


@ratio.variant("eager/half_loads")
def half_loads(a, b):
    return torch.exp(a.half().float()) / b.half().float()


@ratio.variant("eager/approximate_division")
def approximate_division(a, b):
    """Off by some 2^-19 here and there, as an approximate exp and reciprocal are."""
    return torch.exp(a) / b * (1 + 2.0**-19 * torch.sin(1000 * a))


@ratio.variant("eager/three_allowances")
def three_allowances(a, b):
    return torch.exp(a) / b * (1 + 3e-5)


def double_inputs(make, n):
    return (make.normal(n, dtype="float64"),)


double = assay.Op("double_exp", torch.exp, double_inputs, cases=assay.grid(n=[500]))


@double.variant("eager/single")
def single(x):
    return torch.exp(x.float()).double()
