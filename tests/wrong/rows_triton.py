"""Triton kernels over rows: clamped, without `other`, with another one, in a lower precision."""

import torch
import triton
import triton.language as tl

import assay

OPTIONS = {"deadline": 100.0}  # a cold cache first has to have tensor cores built
EXPECT = {
    "triton/clamped": ("not written", "2 of 2,050 elements of output 0, first at [0, 1024]"),
    "triton/other_is_infinite": ("wrong value", "every element"),
    "triton/unmasked_load": ("read outside", "past the end of x"),
    "triton/one_row_short": ("not written", "100 of 300 elements of output 0, first at [2, 0]"),
    "triton/rows_swapped": ("wrong value", "element"),
    "triton/in_place": ("changed its input", "x"),
    "triton/tensor_float": ("lower precision", "looks like tf32, declared float32"),
    "triton/adds_without_atomics": ("race", ""),
    "triton/no_such_name": ("did not build", "no_such"),
    "triton/stores_float16": ("lower precision", "looks like float16, declared float32"),
}
IDS = {
    "triton/clamped": "X06",
    "triton/other_is_infinite": "X03 I2",
    "triton/unmasked_load": "V12 I2",
    "triton/one_row_short": "V10 X12",
    "triton/rows_swapped": "X07",
    "triton/in_place": "V13 O3",
    "triton/tensor_float": "V20",
    "triton/adds_without_atomics": "V16",
    "triton/no_such_name": "B13",
    "triton/stores_float16": "V20",
}
TWIN = {
    "triton/clamped": "triton/whole_row",
    "triton/other_is_infinite": "triton/masked",
    "triton/unmasked_load": "triton/masked",
    "triton/one_row_short": "triton/doubled",
    "triton/rows_swapped": "triton/doubled",
    "triton/in_place": "triton/doubled",
    "triton/tensor_float": "triton/ieee",
    "triton/adds_without_atomics": "triton/atomics",
    "triton/no_such_name": "triton/doubled",
    "triton/stores_float16": "triton/doubled",
}


@triton.jit
def softmax_kernel(x, y, n, most, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, i < most, other=-float("inf"))
    e = tl.exp(v - tl.max(v))
    tl.store(y + row * n + i, e / tl.sum(e), i < most)


def inputs(make, rows, n):
    return (make.normal(rows, n),)


softmax = assay.Op(
    "softmax_of_rows",
    lambda x: torch.softmax(x, -1),
    inputs,
    cases=assay.grid(rows=[2], n=[1025]),
)


@softmax.launcher("triton/whole_row")
def whole_row(y, x):
    """Right."""
    softmax_kernel[(2,)](x, y, x.shape[1], x.shape[1], 2048)


@softmax.launcher("triton/clamped")
def clamped(y, x):
    softmax_kernel[(2,)](x, y, x.shape[1], min(1024, x.shape[1]), 2048)


@triton.jit
def sum_kernel(x, y, n, OTHER: tl.constexpr, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, i < n if MASKED else i < BLOCK, other=OTHER)
    tl.store(y + row, tl.sum(v))


sums = assay.Op("summed", lambda x: x.sum(-1), inputs, cases=assay.grid(rows=[3], n=[100]))


def summed(name, other=0.0, masked=True):
    @sums.launcher(f"triton/{name}")
    def launch(y, x):
        sum_kernel[(3,)](x, y, x.shape[1], other, masked, 128)


summed("masked")
summed("other_is_infinite", other=-float("inf"))
summed("unmasked_load", masked=False)


@triton.jit
def double_kernel(x, y, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, i < n, other=0.0)
    tl.store(y + row * n + i, FACTOR * v, i < n)


@triton.jit
def swapped_kernel(x, y, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row // 2 * n + i, i < n, other=0.0)
    tl.store(y + row * n + i, FACTOR * v, i < n)


@triton.jit
def half_kernel(x, y, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, i < n, other=0.0).to(tl.float16)
    tl.store(y + row * n + i, FACTOR * v, i < n)


@triton.jit
def nameless_kernel(x, y, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.no_such(x + row * n + i, i < n, other=0.0)
    tl.store(y + row * n + i, FACTOR * v, i < n)


doubling = assay.Op("doubled_rows", lambda x: 2 * x, inputs, cases=assay.grid(rows=[3], n=[100]))


def doubled(name, kernel=double_kernel, rows=3, in_place=False):
    @doubling.launcher(f"triton/{name}")
    def launch(y, x):
        kernel[(rows,)](x, y, x.shape[1], 2, 128)
        if in_place:
            kernel[(rows,)](x, x, x.shape[1], 2, 128)


doubled("doubled")
doubled("one_row_short", rows=2)
doubled("rows_swapped", kernel=swapped_kernel)
doubled("in_place", in_place=True)
doubled("stores_float16", kernel=half_kernel)
doubled("no_such_name", kernel=nameless_kernel)


@triton.jit
def dot_kernel(a, b, c, PRECISION: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision=PRECISION))


def two(make, n):
    return make.normal(n, n), make.normal(n, n)


product = assay.Op("product_of_tiles", lambda a, b: a @ b, two, cases=assay.grid(n=[16]))


def dot(name, precision):
    @product.launcher(f"triton/{name}")
    def launch(c, a, b):
        dot_kernel[(1,)](a, b, c, precision, 16)


dot("ieee", "ieee")
dot("tensor_float", "tf32")


@triton.jit
def add_up_kernel(x, y, n, ATOMIC: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + i, i < n, other=0))
    if ATOMIC:
        tl.atomic_add(y, part)
    else:
        tl.store(y, tl.load(y) + part)


def whole_numbers(make, n):
    return (make.integers(n, low=0, high=100, dtype="int32"),)


total = assay.Op(
    "total", lambda x: x.sum(dtype=torch.int32), whole_numbers, cases=assay.grid(n=[200])
)


def added(name, atomic):
    @total.launcher(f"triton/{name}")
    def launch(y, x):
        y.zero_()
        add_up_kernel[(2,)](x, y, x.numel(), atomic, 128)


added("atomics", True)
added("adds_without_atomics", False)
