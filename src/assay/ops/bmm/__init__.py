"""bmm: y[b] = p[b] @ q[b], small matrices, one product for each entry of a batch.

The notes' grid with the batch in z. cuda/naive has a thread for an element of y, which reads a row
of p and a column of q. cuda/tiled reads each tile of p and q once into shared memory for up to
128 x 128 elements of y, of which a thread has 8 x 8 in registers: every number loaded from shared
memory is used eight times (four in small tiles, of 64 x 64). Both add products in float32 (float64
for float64): IEEE float32, not tf32. cuda/tensor gives products of 16-bit dtypes to tensor cores,
as `triton` does; below sm_80, which lack the instruction, it adds them as cuda/tiled.
"""

import torch

from assay import hardware
from assay.inputs import dtype_of
from assay.op import Op

from ..launching import blocks, multiprocessors

MOST = 65_535
"""Blocks that a grid may have in y and in z."""
LARGE = 128
"""Side of a block's tile where those fill the GPU: smaller ones read p and q more often."""


def reference(p, q):
    return torch.bmm(p, q)


def inputs(make, batch, m, n, k, dtype):
    return make.normal(batch, m, k, dtype=dtype), make.normal(batch, k, n, dtype=dtype)


def fits(batch, m, k):
    """Where a grid has room: a gradient has k rows too, and the smallest tiles are 8 rows high."""
    if batch > MOST:
        return "a grid has at most 65,535 blocks in z"
    return max(m, k) <= 8 * MOST or "a grid has at most 65,535 blocks in y, of 8 rows each"


bmm: Op = Op(
    "bmm",
    reference,
    inputs,
    shapes={"p": "batch m k", "q": "batch k n"},
    flops=lambda batch, m, n, k: 2 * batch * m * n * k,
    bytes=lambda batch, m, n, k, dtype: batch * (m * k + k * n + m * n) * dtype_of(dtype).itemsize,
    excludes=("p:huge", "q:huge"),  # whether their sum overflows hangs on its order
    supports=fits,
    cases=[
        dict(batch=1, m=1, n=1, k=1, dtype="float32"),
        dict(batch=3, m=17, n=9, k=33, dtype="float16"),
        dict(batch=3, m=17, n=9, k=33, dtype="float64"),
        dict(batch=4, m=33, n=65, k=40, dtype="float32"),
        dict(batch=4, m=33, n=65, k=40, dtype="bfloat16"),
        dict(batch=64, m=128, n=128, k=128, dtype="float32"),
        # Enough for the large tiles, with edges; in whole vectors too.
        dict(batch=176, m=97, n=66, k=65, dtype="float32"),
        dict(batch=176, m=66, n=72, k=68, dtype="bfloat16"),
        dict(batch=176, m=66, n=72, k=68, dtype="float16"),
    ],
)


def formula(dy, p, q):
    return torch.bmm(dy, q.transpose(1, 2)), torch.bmm(p.transpose(1, 2), dy)


bmm_grad = bmm.gradient(
    formula,
    saves=("p", "q"),
    wrt=("p", "q"),
    flops=lambda batch, m, n, k: 4 * batch * m * n * k,
    bytes=lambda batch, m, n, k, dtype: (
        batch * (2 * m * k + 2 * k * n + m * n) * dtype_of(dtype).itemsize
    ),
)


@bmm.launcher("cuda/naive", source="bmm.cu")
def by_cuda_naive(kernels, y, p, q):
    batch, m, k = p.shape
    n = q.shape[2]
    if y.numel():
        kernel = kernels[f"bmm_naive<{kernels.type(p)}>"]
        kernel(grid=(blocks(n, 32), blocks(m, 8), batch), block=(32, 8), shared=0)(y, p, q, m, n, k)


def fills(y) -> bool:
    """Whether tiles of LARGE x LARGE fill the GPU, and y of (batch, m, n) fills them."""
    batch, m, n = y.shape
    many = batch * blocks(m, LARGE) * blocks(n, LARGE) >= multiprocessors(y)
    return many and min(m, n) > LARGE // 2


def tile(y) -> tuple[int, int, int]:
    """(side of a block's tile of y, of a thread's, how deep) for y of (batch, m, n)."""
    if y.element_size() == 8:
        return 64, 4, 8
    return (LARGE, 8, 16) if fills(y) else (64, 4, 16)


def sizes(y, p, turned) -> tuple[int, int, int]:
    """(m, n, k) of a product y, of (batch, m, n); turned: which of `p` and `q` lies transposed."""
    return y.shape[1], y.shape[2], p.shape[1 if turned == "p" else 2]


def flags(turned) -> str:
    """The template arguments P_TURNED and Q_TURNED."""
    return ", ".join("true" if one == turned else "false" for one in "pq")


def tiled(kernels, y, p, q, turned=""):
    """Fills y; turned: which of `p` and `q` lies transposed."""
    if y.numel():
        m, n, k = sizes(y, p, turned)
        side, each, deep = tile(y)
        kernel = kernels[f"bmm_tiled<{kernels.type(p)}, {side}, {each}, {deep}, {flags(turned)}>"]
        grid = (blocks(n, side), blocks(m, side), y.shape[0])
        kernel(grid=grid, block=(side // each) ** 2, shared=0)(y, p, q, m, n, k)


@bmm.launcher("cuda/tiled", source="bmm.cu")
def by_cuda_tiled(kernels, y, p, q):
    tiled(kernels, y, p, q)


@bmm_grad.launcher("cuda/tiled", source="bmm.cu")
def gradient_by_cuda(kernels, dp, dq, dy, p, q):
    tiled(kernels, dp, dy, q, turned="q")
    tiled(kernels, dq, p, dy, turned="p")


DEPTH, STAGES, PAD = 32, 3, 8
"""Of tiles for tensor cores: how deep, how many at once in shared memory, and by how many elements
a row of them is longer there."""


def sixteen_bits(dtype):
    """Where tensor cores take products as they are: for `when`."""
    return dtype_of(dtype).itemsize == 2 or "meant for 2 bytes an element: tensor cores"


def by_tensor_cores(kernels, y, p, q, turned=""):
    """As `tiled`, of 16-bit dtypes, by tensor cores."""
    if hardware.capability(kernels.arch) < 80:
        tiled(kernels, y, p, q, turned)
    elif y.numel():
        m, n, k = sizes(y, p, turned)
        side, warp = (LARGE, 64) if fills(y) else (64, 32)
        shape = f"{side}, {warp}, {DEPTH}, {STAGES}, {PAD}"
        kernel = kernels[f"bmm_tensor<{kernels.type(p)}, {shape}, {flags(turned)}>"]
        along, across = side * (DEPTH + PAD), DEPTH * (side + PAD)
        elements = (across if turned == "p" else along) + (along if turned == "q" else across)
        grid = (blocks(n, side), blocks(m, side), y.shape[0])
        block = side // warp * (side // 32) * 32
        kernel(grid=grid, block=block, shared=STAGES * elements * 2)(y, p, q, m, n, k)


@bmm.launcher("cuda/tensor", source="bmm.cu", when=sixteen_bits)
def by_cuda_tensor(kernels, y, p, q):
    by_tensor_cores(kernels, y, p, q)


@bmm_grad.launcher("cuda/tensor", source="bmm.cu", when=sixteen_bits)
def gradient_by_cuda_tensor(kernels, dp, dq, dy, p, q):
    by_tensor_cores(kernels, dp, dy, q, turned="q")
    by_tensor_cores(kernels, dq, p, dy, turned="p")


def program(y) -> tuple[int, int, int, int, int]:
    """(rows, columns and depth of a program's tile, warps, stages) for y of (batch, m, n)."""
    if y.element_size() > 4:
        return 32, 32, 32, 4, 2
    if y.element_size() == 4:
        return 64, 64, 16, 4, 3
    return (LARGE, LARGE, 64, 8, 3) if fills(y) else (64, 64, 64, 4, 3)


def in_programs(y, p, q, turned=""):
    """The same in Triton."""
    from .bmm_triton import kernel

    if y.numel():
        m, n, k = sizes(y, p, turned)
        *sides, warps, stages = program(y)
        grid = (blocks(n, sides[1]), blocks(m, sides[0]), y.shape[0])
        lies = turned == "p", turned == "q"
        kernel[grid](y, p, q, m, n, k, *lies, *sides, num_warps=warps, num_stages=stages)


@bmm.launcher("triton")
def by_triton(y, p, q):
    in_programs(y, p, q)


@bmm_grad.launcher("triton")
def gradient_by_triton(dp, dq, dy, p, q):
    in_programs(dp, dy, q, turned="q")
    in_programs(dq, p, dy, turned="p")
