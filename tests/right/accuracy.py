"""Sums in any order and arithmetic better than eager's: right, whatever their bits (V3, V4, V5).

A float32 product split along K, Kahan's sum, halves of halves, float64 inside; a class that is
declared and kept; roundings that go the other way; denormals that are flushed (V22).
"""

import torch

import assay

IDS = {
    "eager/split_k": "V3 V4",
    "eager/kahan": "V3",
    "eager/halves": "V3",
    "eager/in_float64": "V3",
    "eager/float32_total": "V21",
    "eager/declares_tf32": "V20",
    "eager/finite_at_11": "V7",
    "eager/flushes_denormals": "V22",
    "eager/steps_up": "V5",
}
FINDS = {"eager/declares_too_little": "declares bfloat16, and is as exact as float32"}


def product_inputs(make, k, dtype):
    return make.normal(48, k, dtype=dtype), make.normal(k, 40, dtype=dtype)


product = assay.Op(
    "split_products",
    lambda a, b: a @ b,
    product_inputs,
    cases=assay.grid(k=[512, 8192], dtype=["float32", "float16", "bfloat16"]),
)


@product.variant("eager/split_k")
def split_k(a, b):
    parts = [x.float() @ y.float() for x, y in zip(a.chunk(8, 1), b.chunk(8, 0))]
    return sum(parts[1:], parts[0]).to(a.dtype)


@product.variant("eager/in_float64")
def in_float64(a, b):
    return (a.double() @ b.double()).to(a.dtype)


small = assay.Op(
    "declared_products",
    lambda a, b: a @ b,
    lambda make, n: (make.normal(n, n), make.normal(n, n)),
    cases=assay.grid(n=[64]),
)


@small.variant("eager/declares_tf32", precision="tf32")
def declares_tf32(a, b):
    low = [((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32) for x in (a, b)]
    return low[0] @ low[1]


@small.variant("eager/declares_too_little", precision="bfloat16")
def declares_too_little(a, b):
    return (b.t() @ a.t()).t().contiguous()


def rows_inputs(make, n, dtype):
    return (make.uniform(6, n, low=-1, high=2, dtype=dtype),)


sums = assay.Op(
    "careful_sums",
    lambda x: x.sum(-1),
    rows_inputs,
    cases=assay.grid(n=[257, 4096], dtype=["float32", "bfloat16"]),
    excludes=("inf", "masked", "huge"),  # the compensation of an infinity is inf - inf
)


@sums.variant("eager/kahan")
def kahan(x):
    total, lost = (torch.zeros(len(x)) for _ in range(2))
    for column in x.float().t():
        term = column - lost
        more = total + term
        lost = (more - total) - term
        total = more
    return total.to(x.dtype)


@sums.variant("eager/halves")
def halves(x):
    parts = x.float()
    while parts.shape[-1] > 1:
        odd = parts[:, -1:] if parts.shape[-1] % 2 else parts[:, :0]
        half = parts.shape[-1] // 2
        parts = torch.cat([parts[:, :half] + parts[:, half : 2 * half], odd], -1)
    return parts.sum(-1).to(x.dtype)  # of one part, or of none


@sums.variant("eager/float32_total")
def float32_total(x):
    total = torch.zeros(len(x))
    for column in x.t():
        total = total + column
    return total.to(x.dtype)


def gelu_reference(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def gelu_inputs(make, n):
    x = make.uniform(n, low=-8, high=8)
    x[5] = 11
    return (x,)


gelu = assay.Op("gelu_tanh", gelu_reference, gelu_inputs, cases=assay.grid(n=[100]))


@gelu.variant("eager/finite_at_11")
def finite_at_11(x):
    """(1 + tanh(a)) / 2 as 1 / (1 + e^-2a), which no infinity spoils."""
    return x / (1 + torch.exp(-2 * 0.7978845608028654 * (x + 0.044715 * x**3)))


def denormal_inputs(make, n):
    x = make.normal(n)
    x[3] = 2.0**-127
    return (x,)


halved = assay.Op("halved", lambda x: x / 2, denormal_inputs, cases=assay.grid(n=[50]))


@halved.variant("eager/flushes_denormals")
def flushes_denormals(x):
    return torch.where(x.abs() < 2.0**-126, 0, x / 2)


def step_inputs(make, n):
    return (make.uniform(n, low=1, high=2, dtype="bfloat16"),)


thirds = assay.Op(
    "thirds",
    lambda x: x / 3,
    step_inputs,
    cases=assay.grid(n=[300]),
    excludes=("nan", "inf", "masked", "zeros"),  # there is no next one up
)


@thirds.variant("eager/steps_up")
def steps_up(x):
    """Every value the next one up in bfloat16: one step is rounding, not an error."""
    return ((x / 3).view(torch.int16) + 1).view(torch.bfloat16)
