"""cross_entropy of each row: loss[r] = log sum_j exp(x[r, j]) - x[r, target[r]].

Three Ops: the loss alone; its gradient dx = dloss (softmax(x) - onehot(target)), from x; and
`cross_entropy_both`, the loss and the gradient of the sum of losses at once, which training wants:
together they read x once, and the probabilities are never stored in between.

The losses are not averaged: that is one division more for who wants it. Targets lie in [0, n).
"""

import torch
import torch.nn.functional as F

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import multiprocessors
from ..rows import RESIDENT, WALKERS, by_rows, by_tiles, short, streamable, streamed

CASES = [
    dict(rows=1, n=1, dtype="float32"),
    dict(rows=3, n=1000, dtype="float16"),
    dict(rows=5, n=129, dtype="float64"),
    dict(rows=64, n=257, dtype="float32"),
    dict(rows=64, n=257, dtype="bfloat16"),
    dict(rows=2, n=100_003, dtype="float32"),
    dict(rows=2048, n=4096, dtype="float32"),
    dict(rows=2048, n=4096, dtype="bfloat16"),
]


def reference(x, target):
    # What F.cross_entropy computes; of that, torch.compile with dynamic shapes takes the loss of
    # each row for a scalar (torch 2.13).
    return -torch.log_softmax(x, -1).gather(-1, target[:, None])[:, 0]


def inputs(make, rows, n, dtype):
    return make.normal(rows, n, dtype=dtype, std=3), make.integers(rows, low=0, high=n)


def formula(dloss, x, target):
    one = F.one_hot(target, x.shape[-1]).to(x.dtype)
    return dloss[:, None] * (torch.softmax(x, -1) - one)


def both(x, target):
    one = F.one_hot(target, x.shape[-1]).to(x.dtype)
    return reference(x, target), torch.softmax(x, -1) - one


def read(rows, n, dtype, times=1):
    return (times * rows * n + rows) * dtype_of(dtype).itemsize + 8 * rows


def read_twice(rows, n, dtype):
    return read(rows, n, dtype, 2)


# max, subtract, exp, add; and of the gradient multiply
cross_entropy: Op = Op(
    "cross_entropy",
    reference,
    inputs,
    shapes={"x": "rows n", "target": "rows"},
    flops=lambda rows, n: 4 * rows * n,
    bytes=read,
    cases=CASES,
)


@cross_entropy.variant("eager/cross_entropy")
def by_torch(x, target):
    return F.cross_entropy(x, target, reduction="none")


cross_entropy_grad = cross_entropy.gradient(
    formula,
    saves=("x", "target"),
    wrt="x",
    flops=lambda rows, n: 6 * rows * n,
    bytes=read_twice,
)
cross_entropy_both: Op = Op(
    "cross_entropy_both",
    both,
    inputs,
    shapes={"x": "rows n", "target": "rows"},
    flops=lambda rows, n: 5 * rows * n,
    bytes=read_twice,
    cases=CASES,
)


HELD_BYTES = 1 << 14
"""A longer row is walked where the loss alone is wanted: it is read once so or so, and a block that
does not hold it leaves room for others, whose rows are on their way meanwhile."""


def launch(k, name, x, arguments, most=32, **sizes):
    # 32 elements of a thread: a row is reduced three times, each time by all of its threads.
    each = 8 if x.element_size() == 4 else 4
    if x.numel():
        by_rows(k, name, x, arguments, most, each, each, **sizes)


def walkers(x):
    """Threads that walk a row: no more than fill the GPU, so that many rows are on their way."""
    room = max(1, RESIDENT * multiprocessors(x) // max(1, x.shape[0]))
    return min(WALKERS, max(128, 1 << room.bit_length() - 1))


@cross_entropy.launcher("cuda/held", source="cross_entropy.cu")
def by_cuda(k, loss, x, target):
    walked = x.shape[1] * x.element_size() > HELD_BYTES
    sizes = {"most": 0, "walkers": walkers(x)} if walked else {}
    launch(k, "cross_entropy", x, (loss, x, target), **sizes)


@cross_entropy.launcher("cuda/streamed", source="cross_entropy.cu", when=streamable)
def by_cuda_streamed(k, loss, x, target):
    if x.numel():
        streamed(k, "cross_entropy", x, (loss, x, target))


@cross_entropy_grad.launcher("cuda/held", source="cross_entropy.cu")
def gradient_by_cuda(k, dx, dloss, x, target):
    launch(k, "cross_entropy_grad", x, (dx, dloss, x, target))


@cross_entropy_both.launcher("cuda/held", source="cross_entropy.cu")
def both_by_cuda(k, loss, dx, x, target):
    launch(k, "cross_entropy_both", x, (loss, dx, x, target))


@cross_entropy_both.launcher("cuda/streamed", source="cross_entropy.cu", when=streamable)
def both_by_cuda_streamed(k, loss, dx, x, target):
    if x.numel():
        streamed(k, "cross_entropy_both", x, (loss, dx, x, target))


def by_program(loss, dx, dloss, x, target, loss_asked, dx_asked, block):
    from .cross_entropy_triton import kernel

    if x.numel():
        rows, n = x.shape
        given = (loss, dx, dloss, x, target, n, loss_asked, dx_asked)
        kernel[(rows,)](*given, block, num_warps=8)


def by_held_program(loss, dx, dloss, x, target, loss_asked, dx_asked):
    from .cross_entropy_triton import held_kernel

    if x.numel():
        rows, n = x.shape
        by_tiles(held_kernel, rows, n, (loss, dx, dloss, x, target, loss_asked, dx_asked))


# Without a gradient dx and dloss are not looked at, nor is the loss without it.
@cross_entropy.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def by_triton(loss, x, target, BLOCK):
    by_program(loss, x, loss, x, target, True, False, BLOCK)


@cross_entropy_grad.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def gradient_by_triton(dx, dloss, x, target, BLOCK):
    by_program(dloss, dx, dloss, x, target, False, True, BLOCK)


@cross_entropy_both.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def both_by_triton(loss, dx, x, target, BLOCK):
    by_program(loss, dx, loss, x, target, True, True, BLOCK)


@cross_entropy.launcher("triton/held", when=short)
def by_triton_held(loss, x, target):
    by_held_program(loss, x, loss, x, target, True, False)


@cross_entropy_grad.launcher("triton/held", when=short)
def gradient_by_triton_held(dx, dloss, x, target):
    by_held_program(dloss, dx, dloss, x, target, False, True)


@cross_entropy_both.launcher("triton/held", when=short)
def both_by_triton_held(loss, dx, x, target):
    by_held_program(loss, dx, loss, x, target, True, True)
