"""vecadd: y[i] = a[i] + b[i], of vectors (`vecadd`) and of 3-D arrays (`vecadd3d`).

One addition for two elements read and one written: a twelfth of a FLOP a byte in float32. The rungs
differ in how many threads share the work: one, one block, one thread an element, 16 bytes a thread.
An integer sum that does not fit wraps around, as in torch.
"""

import torch

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import blocks, numba_has, numpy_has, tile_of

FEW = 1 << 14
"""Elements up to which one thread or one block is shown: beyond, they only take time."""


def reference(a, b):
    return a + b


def inputs(make, n, dtype):
    if dtype_of(dtype).is_floating_point:
        return make.normal(n, dtype=dtype), make.normal(n, dtype=dtype)
    return tuple(make.integers(n, low=-(2**30), high=2**30, dtype=dtype) for _ in range(2))


vecadd: Op = Op(
    "vecadd",
    reference,
    inputs,
    shapes={"a": "...", "b": "..."},
    flops=lambda n: n,
    bytes=lambda n, dtype: 3 * n * dtype_of(dtype).itemsize,
    cases=[
        dict(n=1, dtype="float32"),
        dict(n=1000, dtype="int32"),
        dict(n=1000, dtype="float16"),
        dict(n=1001, dtype="float64"),
        dict(n=1001, dtype="bfloat16"),
        dict(n=10_007, dtype="float32"),
        dict(n=1 << 20, dtype="float32"),
        dict(n=1 << 24, dtype="float32"),
        dict(n=1 << 24, dtype="bfloat16"),
    ],
)


def formula(dy):
    return dy.clone(), dy.clone()


vecadd_grad = vecadd.gradient(formula, wrt=("a", "b"))


def few(n):
    return n <= FEW or f"shown up to n={FEW}: the threads of one block, or one, wait for memory"


@vecadd.variant("python", when=numpy_has)
def by_numpy(a, b):
    return torch.from_numpy(a.numpy() + b.numpy())


@vecadd.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def by_triton(y, a, b, BLOCK):
    from .vecadd_triton import kernel

    n = a.numel()
    if n:
        kernel[(blocks(n, BLOCK),)](y, a, b, n, BLOCK)


@vecadd.launcher("cuda/one_thread", source="vecadd.cu", when=few)
def by_cuda_one_thread(k, y, a, b):
    k[f"vecadd_strided<{k.type(a)}>"](grid=1, block=1, shared=0)(y, a, b, a.numel())


@vecadd.launcher("cuda/one_block", source="vecadd.cu", when=few)
def by_cuda_one_block(k, y, a, b):
    k[f"vecadd_strided<{k.type(a)}>"](grid=1, block=256, shared=0)(y, a, b, a.numel())


@vecadd.launcher("cuda/naive", source="vecadd.cu")
def by_cuda_naive(k, y, a, b):
    n = a.numel()
    if n:
        k[f"vecadd_strided<{k.type(a)}>"](grid=blocks(n, 256), block=256, shared=0)(y, a, b, n)


@vecadd.launcher("cuda/vectorised", source="vecadd.cu", knobs={"UNROLL": [2, 1, 4]})
def by_cuda_vectorised(k, y, a, b, UNROLL):
    n = a.numel()
    if n:
        built = k[f"vecadd_vectorised<{k.type(a)}, 256, {UNROLL}>"]
        built(grid=blocks(n, tile_of(a, 256, UNROLL)), block=256, shared=0)(y, a, b, n)


@vecadd.launcher("numba", when=numba_has)
def by_numba(y, a, b):
    from .vecadd_numba import EACH, THREADS, kernel

    n = a.numel()
    if n:
        kernel[blocks(n, EACH * THREADS), THREADS](y.view(-1), a.view(-1), b.view(-1))


@vecadd.launcher("cpp", source="vecadd.cpp", when=lambda dtype: dtype == "float32" or "float32")
def by_cpp(k, y, a, b):
    k.vecadd_float32(y, a, b, a.numel())


from .three_dimensions import vecadd3d as vecadd3d  # noqa: E402 - it adds as the Op above
from .three_dimensions import vecadd3d_grad as vecadd3d_grad  # noqa: E402
