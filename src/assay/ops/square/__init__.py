"""square: y[i] = x[i] * x[i], for every element.

One multiplication for an element read and an element written: an eighth of a FLOP a byte in
float32, where a GPU needs tens before arithmetic matters. The best a kernel can do is to move the
bytes at the rate of a copy.

An integer product that does not fit wraps around, as in torch.
"""

import torch

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import FLOATS, INCLUDE, blocks, function_for, numba_has, numpy_has


def reference(x):
    return x * x


def inputs(make, m, n, dtype):
    if dtype_of(dtype).is_floating_point:
        return (make.normal(m, n, dtype=dtype),)
    # The largest whose square fits 32 bits.
    return (make.integers(m, n, low=-46340, high=46341, dtype=dtype),)


square: Op = Op(
    "square",
    reference,
    inputs,
    shapes={"x": "..."},
    flops=lambda m, n: m * n,
    bytes=lambda m, n, dtype: 2 * m * n * dtype_of(dtype).itemsize,
    cases=[
        dict(m=1, n=1, dtype="float32"),
        dict(m=37, n=27, dtype="int32"),  # 999 elements: no multiple of any block
        dict(m=37, n=27, dtype="float16"),
        dict(m=37, n=27, dtype="float64"),
        dict(m=1823, n=781, dtype="float32"),  # odd: a tail for every vector width
        dict(m=1823, n=781, dtype="bfloat16"),
        dict(m=4096, n=4096, dtype="float32"),
        dict(m=4096, n=4096, dtype="bfloat16"),
    ],
)


@square.variant("eager/square")
def by_square(x):
    """PyTorch's `square`, which is its `pow` of 2."""
    return torch.square(x)


@square.variant("eager/pow")
def by_pow(x):
    """The third spelling: on a GPU `pow` knows the exponent 2, and multiplies."""
    return x**2


@square.variant("python", when=numpy_has)
def by_numpy(x):
    a = x.numpy()
    return torch.from_numpy(a * a)


@square.launcher("triton", knobs={"BLOCK": [1024, 4096]})
def by_triton(y, x, BLOCK):
    from .square_triton import kernel

    n = x.numel()
    if n:
        kernel[((n + BLOCK - 1) // BLOCK,)](x, y, n, BLOCK)


@square.launcher("cuda/naive", source="square.cu", knobs={"BLOCK": [256, 1024]})
def by_cuda_naive(k, y, x, BLOCK):
    n = x.numel()
    if n:
        grid = (n + BLOCK - 1) // BLOCK
        k[f"square_naive<{k.type(x)}, {BLOCK}>"](grid=grid, block=BLOCK, shared=0)(y, x, n)


def has_room(m):
    return m <= 16 * 65_535 or "a grid has at most 65,535 blocks in y"


@square.launcher("cuda/two_dimensions", source="square_two_dimensions.cu", when=has_room)
def by_cuda_two_dimensions(k, y, x):
    if x.numel():
        n = x.shape[-1] if x.dim() else 1
        m = x.numel() // n
        kernel = k[f"square_two_dimensions<{k.type(x)}>"]
        kernel(grid=(blocks(n, 16), blocks(m, 16)), block=(16, 16), shared=0)(y, x, m, n)


@square.launcher("cuda/vectorised", source="square.cu", knobs={"BLOCK": [256, 1024]})
def by_cuda_vectorised(k, y, x, BLOCK):
    n = x.numel()
    if n:
        tile = BLOCK * (16 // x.element_size())  # each thread moves 16 bytes
        grid = (n + tile - 1) // tile
        k[f"square_vectorised<{k.type(x)}, {BLOCK}>"](grid=grid, block=BLOCK, shared=0)(y, x, n)


@square.launcher("extension", source="square_extension.cpp")
def by_extension(k, y, x):
    k.square_out(y, x)


@square.launcher("numba", when=numba_has)
def by_numba(y, x):
    from .square_numba import EACH, THREADS, kernel

    n = x.numel()
    if n:
        tile = EACH * THREADS
        kernel[(n + tile - 1) // tile, THREADS](y.view(-1), x.view(-1))


@square.launcher("cpp", source="square.cpp", include=INCLUDE)
def by_cpp(k, y, x):
    function_for(k, "square", x, (*FLOATS, "int32"))(y, x, x.numel())


from .gradient import square_grad as square_grad  # noqa: E402 - it is made of the Op above
from .gradient import square_grad_grad as square_grad_grad  # noqa: E402
