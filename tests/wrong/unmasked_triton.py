"""Triton kernels without a mask: `wrote outside`, with the line and the thread."""

import triton
import triton.language as tl

import assay

EXPECT = {
    "triton/unmasked BLOCK=256": ("wrote outside", "across the end of output 0"),
    "triton/unmasked BLOCK=1024": ("wrote outside", "across the end of output 0"),
    "triton/one_block_short BLOCK=1": ("not written", "1 of 1 elements of output 0"),
    "triton/odd_block": ("did not build", "must be a power of two: round the block up"),
}
IDS = "I1 V12 X28"
TWIN = {
    "triton/unmasked": "triton",
    "triton/one_block_short": "triton",
    "triton/odd_block": "triton",
}


def inputs(make, n):
    return (make.normal(n),)


op = assay.Op("copied", lambda x: 1 * x, inputs, cases=assay.grid(n=[1]))


@triton.jit
def masked_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, i < n), i < n)


@triton.jit
def unmasked_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, i < n))


@op.launcher("triton", knobs={"BLOCK": [64]})
def masked(out, x, BLOCK):
    """Right."""
    masked_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK)


@op.launcher("triton/unmasked", knobs={"BLOCK": [256, 1024]})
def unmasked(out, x, BLOCK):
    unmasked_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK)


@op.launcher("triton/one_block_short", knobs={"BLOCK": [1]})
def one_block_short(out, x, BLOCK):
    for _ in range(x.numel() // BLOCK - 1):
        masked_kernel[(1,)](x, out, x.numel(), BLOCK)


@op.launcher("triton/odd_block")
def odd_block(out, x):
    masked_kernel[(1,)](x, out, x.numel(), 257)
