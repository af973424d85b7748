"""hello: every thread says who it is: its block, its place in the block, and what it stands for.

A kernel runs once for each thread of a grid of blocks, in up to three dimensions. A thread knows
its block (blockIdx) and its place in it (threadIdx), and the element it stands for is

    i = blockIdx * blockDim + threadIdx        in each dimension.

x, a 3-D array, is covered by blocks of bz by by by bx threads. Where its sides are no multiples,
the last blocks have threads beyond it, which must keep still. For each element y holds

    blockIdx.x, .y, .z,  threadIdx.x, .y, .z,  the element's place in memory,  x's own value

In one dimension d = h = 1, in two d = 1. A grid has 2**31 - 1 blocks in x, 65,535 in y and z.
"""

import torch

from assay.op import Op

MOST = 65_535
"""Blocks that a grid may have in y and z."""


def reference(x, bx, by, bz):
    places = [torch.arange(n, device=x.device) for n in x.shape]
    z, y, x_ = torch.meshgrid(*places, indexing="ij")
    flat = (z * x.shape[1] + y) * x.shape[2] + x_
    parts = (x_ // bx, y // by, z // bz, x_ % bx, y % by, z % bz, flat, x)
    return torch.stack([part.to(torch.int32) for part in parts], -1)


def inputs(make, d, h, w, bx, by, bz):
    return (make.integers(d, h, w, low=-1000, high=1000, dtype="int32"), bx, by, bz)


def supports(d, h, w, bx, by, bz):
    if bx * by * bz > 1024:
        return "a block has at most 1,024 threads"
    if d > MOST * bz or h > MOST * by:
        return "a grid has at most 65,535 blocks in y and in z"
    return True


hello: Op = Op(
    "hello",
    reference,
    inputs,
    flops=lambda d, h, w: 0,
    bytes=lambda d, h, w: 9 * 4 * d * h * w,
    supports=supports,
    cases=[
        dict(d=1, h=1, w=1000, bx=256, by=1, bz=1),
        dict(d=1, h=30, w=50, bx=16, by=16, bz=1),
        dict(d=7, h=11, w=13, bx=8, by=4, bz=2),
        dict(d=64, h=128, w=256, bx=32, by=4, bz=2),
    ],
)


@hello.launcher("triton", knobs={"BLOCK": [256]})
def by_triton(out, x, bx, by, bz, BLOCK):
    from .hello_triton import kernel

    n = x.numel()
    if n:
        _, h, w = x.shape
        kernel[((n + BLOCK - 1) // BLOCK,)](out, x, n, h, w, bx, by, bz, BLOCK)


@hello.launcher("cuda", source="hello.cu")
def by_cuda(k, out, x, bx, by, bz):
    if x.numel():
        d, h, w = x.shape
        grid = (-(-w // bx), -(-h // by), -(-d // bz))
        k["hello"](grid=grid, block=(bx, by, bz), shared=0)(out, x, d, h, w)


@hello.launcher("numba")
def by_numba(out, x, bx, by, bz):
    from .hello_numba import kernel

    if x.numel():
        d, h, w = x.shape
        kernel[(-(-w // bx), -(-h // by), -(-d // bz)), (bx, by, bz)](out, x)
