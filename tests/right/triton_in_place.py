"""A Triton program with fewer elements than threads: idle threads load what others then change."""

import triton
import triton.language as tl

import assay

IDS = "V13"


def reference(x):
    x += 1
    return x


def inputs(make, n):
    return (make.normal(n),)


op = assay.Op("one_more", reference, inputs, mutates="x", cases=assay.grid(n=[100]))


@triton.jit
def kernel(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, i < n) + 1, i < n)


@op.launcher("triton")
def launch(x):
    kernel[(triton.cdiv(x.numel(), 16),)](x, x.numel(), BLOCK=16)
