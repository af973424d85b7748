"""Triton over rows: padded blocks, several outputs, full precision, atomics, bfloat16 sums."""

import torch
import triton
import triton.language as tl

import assay

OPTIONS = {"deadline": 100.0}  # a cold cache first has to have tensor cores built
IDS = {
    "triton/padded": "I1 V22",
    "triton/ieee": "V20",
    "triton/three_passes": "V20",
    "triton/atomics": "V16",
    "triton/in_float32": "V21",
    "triton/mean_and_deviation": "V8",
}


@triton.jit
def softmax_kernel(x, y, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v))
    tl.store(y + row * n + i, e / tl.sum(e), i < n)


def inputs(make, rows, n):
    return (make.normal(rows, n),)


softmax = assay.Op(
    "softmax_padded",
    lambda x: torch.softmax(x, -1),
    inputs,
    cases=[dict(rows=3, n=33)],
    excludes=("size", "denormal"),
)


@softmax.launcher("triton/padded")
def padded(y, x):
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], triton.next_power_of_2(x.shape[1]))


@triton.jit
def statistics_kernel(x, mean, deviation, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, i < n, other=0.0)
    m = tl.sum(v) / n
    d = tl.where(i < n, v - m, 0.0)
    tl.store(mean + row, m)
    tl.store(deviation + row, tl.sqrt(tl.sum(d * d) / n))


statistics = assay.Op(
    "mean_and_deviation",
    lambda x: (x.mean(-1), x.var(-1, unbiased=False).sqrt()),
    inputs,
    cases=[dict(rows=3, n=33)],
    excludes=("size", "huge", "tiny", "equal", "expanded", "broadcast", "denormal"),
)


@statistics.launcher("triton/mean_and_deviation")
def mean_and_deviation(mean, deviation, x):
    statistics_kernel[(x.shape[0],)](x, mean, deviation, x.shape[1], 128)


@triton.jit
def dot_kernel(a, b, c, PRECISION: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision=PRECISION))


def two(make, n):
    return make.normal(n, n), make.normal(n, n)


product = assay.Op(
    "product_of_tiles",
    lambda a, b: a @ b,
    two,
    cases=assay.grid(n=[16]),
    # The corrections of a split product are lost beside such values, or are NaN.
    excludes=("size", "inf", "huge", "tiny", "denormal", "wide"),
)


def dot(name, precision):
    @product.launcher(f"triton/{name}")
    def launch(c, a, b):
        dot_kernel[(1,)](a, b, c, precision, 16)


dot("ieee", "ieee")
dot("three_passes", "tf32x3")


@triton.jit
def total_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y, tl.sum(tl.load(x + i, i < n, other=0.0).to(tl.float32)))


def flat(make, n):
    return (make.uniform(n, dtype="bfloat16"),)


total = assay.Op(
    "total_in_float32",
    lambda x: x.sum(dtype=torch.float64 if x.dtype is torch.float64 else torch.float32),
    flat,
    cases=assay.grid(n=[700]),
    excludes=("size", "tiny", "denormal"),  # atomic additions flush what is subnormal
)


@total.launcher("triton/in_float32")
def in_float32(y, x):
    y.zero_()
    total_kernel[(1,)](x, y, x.numel(), 1024)


@total.launcher("triton/atomics")
def atomics(y, x):
    y.zero_()
    total_kernel[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), 128)
