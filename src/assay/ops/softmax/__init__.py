"""softmax over the last dimension: y[r, i] = exp(x[r, i] - max_r) / sum_j exp(x[r, j] - max_r).

max_r = max_j x[r, j] cancels in the fraction; it is subtracted so that no exp overflows, and so
that at least one of them is 1 and the sum can't vanish.

Written plainly, a row is walked three times: for its max, for its sum, and for y. Online softmax
finds max and sum in one walk: it keeps m, the largest value so far, and s = sum exp(x_j - m) over
what it has seen. A larger value m' turns s into s * exp(m - m') and then goes in itself. Two such
pairs combine the same way, so threads can share a row.

A row that holds a NaN or +inf, or nothing but -inf, gives NaN everywhere, as in torch.
"""

import torch

from assay import hardware
from assay.errors import NotSupported
from assay.inputs import dtype_name, dtype_of
from assay.op import Op

from ..launching import INCLUDE, blocks, function_for, multiprocessors, numba_has, numpy_has
from ..rows import (
    WALKERS,
    by_rows,
    by_tiles,
    few_long,
    in_parts,
    of_rows,
    short,
    streamable,
    streamed,
)


def reference(x):
    return torch.softmax(x, -1)


def inputs(make, rows, n, dtype):
    return (make.normal(rows, n, dtype=dtype, std=3),)


softmax: Op = Op(
    "softmax",
    reference,
    inputs,
    shapes={"x": "... n"},
    # max, subtract, exp, add, divide
    flops=lambda rows, n: 5 * rows * n,
    bytes=lambda rows, n, dtype: 2 * rows * n * dtype_of(dtype).itemsize,
    cases=[
        dict(rows=1, n=1, dtype="float32"),
        dict(rows=3, n=1000, dtype="float32"),
        dict(rows=64, n=1025, dtype="float32"),  # odd rows: every other start is misaligned
        dict(rows=64, n=1025, dtype="bfloat16"),
        dict(rows=64, n=1025, dtype="float16"),
        dict(rows=3, n=1000, dtype="float64"),
        dict(rows=2, n=100_003, dtype="float32"),  # longer than any block
        dict(rows=3, n=40_960, dtype="float32"),  # the same in whole vectors
        dict(rows=3, n=40_960, dtype="bfloat16"),
        dict(rows=4096, n=8192, dtype="float32"),
        dict(rows=4096, n=8192, dtype="bfloat16"),
    ],
)


@softmax.variant("python", when=numpy_has)
def by_numpy(x):
    import numpy as np

    if not x.numel():
        return torch.empty_like(x)
    a = x.numpy()
    wide = a.astype(np.promote_types(a.dtype, np.float32), copy=False)
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, as it should be
        y = np.exp(wide - wide.max(-1, keepdims=True))
        y /= y.sum(-1, keepdims=True)
    return torch.from_numpy(y.astype(a.dtype, copy=False))


@softmax.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def by_triton(y, x, BLOCK):
    from .softmax_triton import kernel

    if x.numel():
        n = x.shape[-1]
        kernel[(x.numel() // n,)](x, y, n, BLOCK, num_warps=8)


@softmax.launcher("triton/held", when=short)
def by_triton_held(y, x):
    from .softmax_triton import held_kernel

    if x.numel():
        by_tiles(held_kernel, *of_rows(x), (x, y))


@softmax.launcher("cuda/online", source="softmax.cu", knobs={"BLOCK": [256, 1024]})
def by_cuda_online(k, y, x, BLOCK):
    if x.numel():
        n = x.shape[-1]
        built = k[f"softmax_online<{k.type(x)}, {BLOCK}>"]
        built(grid=x.numel() // n, block=BLOCK, shared=0)(y, x, n)


@softmax.launcher("cuda/held", source="softmax_held.cu")
def by_cuda_held(k, y, x):
    if x.numel():
        # 64 KB on their way to a multiprocessor: with more, memory is slower again.
        by_rows(k, "softmax", x, (y, x), each=4 if x.element_size() == 2 else 2)


@softmax.launcher("cuda/streamed", source="softmax_streamed.cu", when=streamable)
def by_cuda_streamed(k, y, x):
    if x.numel():
        streamed(k, "softmax", x, (y, x))


PIECE_THREADS, PIECE_ELEMENTS = 256, 8192
"""Of a block that holds a piece of a row: 32 elements and 64 registers a thread, four together."""
MOST_PIECES = 64


def joinable(n, dtype):
    """Where a row has some pieces, and not so many that blocks would wait for those to come."""
    if dtype_of(dtype).itemsize > 4:
        return "meant for 4 bytes an element or less: a thread has 64 registers"
    least, most = PIECE_ELEMENTS, MOST_PIECES * PIECE_ELEMENTS
    return least < n <= most or f"meant for rows of more than {least:,} and up to {most:,} elements"


@softmax.launcher("cuda/joined", source="softmax_joined.cu", when=joinable)
def by_cuda_joined(k, y, x):
    if not x.numel():
        return
    n = x.shape[-1]
    rows, parts = x.numel() // n, blocks(n, PIECE_ELEMENTS)
    if 2 * parts > multiprocessors(x):
        raise NotSupported(
            f"softmax: {parts} blocks wait for one another on a GPU that has room "
            f"for some {4 * multiprocessors(x)}: use cuda/held"
        )
    kept = torch.empty(rows, parts, 2, dtype=torch.float32, device=x.device)
    drawn = torch.zeros(rows + 1, dtype=torch.int32, device=x.device)
    vectors = PIECE_ELEMENTS // PIECE_THREADS * x.element_size() // 16
    built = k[f"softmax_joined<{k.type(x)}, {PIECE_THREADS}, {vectors}>"]
    built(grid=rows * parts, block=PIECE_THREADS, shared=0)(y, kept, drawn, x, rows, n, parts)


CLUSTERS = (2, 4, 8, 16)
"""Blocks of a cluster; not every GPU has room for 16."""
CLUSTER_THREADS = 256
HELD, MOST_HELD = 64, 96
"""Elements of a thread, where three blocks share a multiprocessor, and where two do."""
LEAST_ROW = 16 << 10
"""Elements of a row that one block should rather hold."""


def clusterable(n, dtype):
    """Where a row is longer than one block should hold, and not longer than a cluster can."""
    if dtype_of(dtype).itemsize > 4:
        return "meant for 4 bytes an element or less: a thread has no more registers"
    most = CLUSTERS[-1] * CLUSTER_THREADS * MOST_HELD
    told = f"meant for rows of more than {LEAST_ROW:,} and up to {most:,} elements"
    return LEAST_ROW < n <= most or told


@softmax.launcher("cuda/cluster", source="softmax_cluster.cu", when=clusterable)
def by_cuda_cluster(k, y, x):
    if not x.numel():
        return
    n, width = x.shape[-1], 16 // x.element_size()
    fits = [c for c in CLUSTERS[:-1] if n <= c * CLUSTER_THREADS * HELD]
    cluster = fits[0] if fits else CLUSTERS[-1]
    most = hardware.cluster_of(k.arch)
    if 1 < most < cluster:  # where there are no clusters, a block walks the row
        raise NotSupported(
            f"softmax: a row of {n:,} elements wants {cluster} blocks, and a cluster on {k.arch} "
            f"has room for {most}: use cuda/split"
        )
    each = blocks(n, cluster * width) * width
    vectors = HELD // width if each <= CLUSTER_THREADS * HELD else MOST_HELD // width
    together = 3 if vectors * width == HELD else 2
    whole = "true" if n % width == 0 else "false"
    choice = f"{CLUSTER_THREADS}, {vectors}, {cluster}, {together}, {whole}"
    built = k[f"softmax_cluster<{k.type(x)}, {choice}>"]
    built(grid=x.numel() // n * cluster, block=CLUSTER_THREADS, shared=0)(y, x, n, each)


@softmax.launcher("cuda/split", source="softmax_held.cu", when=few_long)
def by_cuda_split(k, y, x):
    if not x.numel():
        return
    n = x.shape[-1]
    rows = x.numel() // n
    kept, parts = in_parts(k, "softmax", x, rows, n, 2)
    kernel = k[f"softmax_write<{k.type(x)}, {WALKERS}>"]
    kernel(grid=rows * parts, block=WALKERS, shared=0, early=True)(y, kept, x, n, parts)


@softmax.launcher("extension", source="softmax_extension.cpp")
def by_extension(k, y, x):
    k.softmax_out(y, x)


@softmax.launcher("numba", when=numba_has)
def by_numba(y, x):
    from .softmax_numba import THREADS, kernel_for

    if x.numel():
        n = x.shape[-1]
        kernel = kernel_for(dtype_name(x.dtype))
        kernel[x.numel() // n, THREADS](y.view(-1, n), x.view(-1, n))


@softmax.launcher("cpp", source="softmax.cpp", include=INCLUDE)
def by_cpp(k, y, x):
    function = function_for(k, "softmax", x)
    if x.numel():
        n = x.shape[-1]
        function(y, x, x.numel() // n, n)


from .gradient import softmax_grad as softmax_grad  # noqa: E402 - it is made of the Op above
