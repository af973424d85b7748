"""vecadd3d: y = a + b of 3-D arrays, by a grid in three dimensions and by one that ignores them.

Added element by element, an array's shape does not matter: a flat grid is the better one. The 3-D
grid is how a kernel is launched that does need to know where it is.
"""

from assay.inputs import dtype_of
from assay.op import Op

from .. import launching
from . import formula, reference

SIDES = (32, 4, 2)
"""Threads of a block in x, y and z: a warp lies along x, where neighbours are."""
MOST = 65_535
"""Blocks that a grid may have in y and z."""


def inputs(make, d, h, w, dtype):
    return make.normal(d, h, w, dtype=dtype), make.normal(d, h, w, dtype=dtype)


vecadd3d: Op = Op(
    "vecadd3d",
    reference,
    inputs,
    shapes={"a": "d h w", "b": "d h w"},
    flops=lambda d, h, w: d * h * w,
    bytes=lambda d, h, w, dtype: 3 * d * h * w * dtype_of(dtype).itemsize,
    cases=[
        dict(d=7, h=11, w=13, dtype="float32"),
        dict(d=7, h=11, w=13, dtype="float16"),
        dict(d=16, h=16, w=33, dtype="bfloat16"),
        dict(d=128, h=128, w=256, dtype="float32"),
    ],
)


vecadd3d_grad = vecadd3d.gradient(formula, wrt=("a", "b"))


def fits(d, h):
    inside = d <= MOST * SIDES[2] and h <= MOST * SIDES[1]
    return inside or "a grid has at most 65,535 blocks in y and in z"


@vecadd3d.launcher("cuda/grid_3d", source="vecadd.cu", when=fits)
def by_cuda_grid_3d(k, y, a, b):
    if a.numel():
        d, h, w = a.shape
        grid = tuple(launching.blocks(n, side) for n, side in zip((w, h, d), SIDES))
        k[f"vecadd_3d<{k.type(a)}>"](grid=grid, block=SIDES, shared=0)(y, a, b, d, h, w)


@vecadd3d.launcher("cuda/flat", source="vecadd.cu")
def by_cuda_flat(k, y, a, b):
    n = a.numel()
    if n:
        built = k[f"vecadd_vectorised<{k.type(a)}, 256, 2>"]
        built(grid=launching.blocks(n, launching.tile_of(a, 256, 2)), block=256, shared=0)(
            y, a, b, n
        )


@vecadd3d.launcher("triton", knobs={"BLOCK": [1024]})
def by_triton(y, a, b, BLOCK):
    from .vecadd_triton import kernel

    n = a.numel()
    if n:
        kernel[(launching.blocks(n, BLOCK),)](y, a, b, n, BLOCK)
