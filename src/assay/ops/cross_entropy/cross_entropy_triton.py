"""cross_entropy, its gradient, or both in Triton: one program a row of any length.

LOSS writes the loss; GRAD writes dx, times dloss unless LOSS is asked for too: then the gradient
is that of the sum of losses.

shapes  x, dx: (rows, n), contiguous, of one floating dtype; loss, dloss, target: rows
bytes   rows * n * itemsize for the loss, 2 * that with dx: the second walk finds the row in a cache
FLOPs   4 * rows * n for the loss, 6 with dx, counting exp as one
"""

import triton
import triton.language as tl

from ..log_softmax.log_softmax_triton import log_of_sum
from ..pointwise_triton import wide


@triton.jit
def kernel(
    loss, dx, dloss, x, target, n, LOSS: tl.constexpr, GRAD: tl.constexpr, BLOCK: tl.constexpr
):
    dtype: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64)  # row * n may pass 2**31
    x += row * n
    right = tl.load(target + row)
    columns = tl.arange(0, BLOCK)

    shift, log, sum = log_of_sum(x, n, BLOCK)

    if LOSS:
        value = log - (wide(tl.load(x + right)) - shift)
        tl.store(loss + row, value.to(loss.dtype.element_ty))
    if GRAD:
        factor = tl.full([], 1, dtype)
        if not LOSS:
            factor = wide(tl.load(dloss + row))
        for start in range(0, n, BLOCK):
            at = start + columns
            v = wide(tl.load(x + at, mask=at < n, other=0))
            p = tl.exp(v - shift) / sum - tl.where(at == right, 1.0, 0.0)
            tl.store(dx + row * n + at, (factor * p).to(dx.dtype.element_ty), at < n)
