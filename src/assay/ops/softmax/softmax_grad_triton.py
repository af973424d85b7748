"""dx = y (dy - sum(dy y)) over the last dimension in Triton: one program a row, of any length.

shapes  dx, dy, y: (rows, n), contiguous, of one floating dtype
bytes   3 * rows * n * itemsize: the second walk finds the row in a cache, if it fits
FLOPs   4 * rows * n
"""

import triton
import triton.language as tl


@triton.jit
def kernel(dy, y, dx, n, BLOCK: tl.constexpr):
    wide: tl.constexpr = tl.float64 if y.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64)  # row * n may pass 2**31
    dy += row * n
    y += row * n
    dx += row * n
    columns = tl.arange(0, BLOCK)

    sums = tl.full([BLOCK], 0, wide)
    for start in range(0, n, BLOCK):
        inside = start + columns < n
        g = tl.load(dy + start + columns, mask=inside, other=0).to(wide)
        v = tl.load(y + start + columns, mask=inside, other=0).to(wide)
        sums += g * v
    total = tl.sum(sums, 0)
    for start in range(0, n, BLOCK):
        inside = start + columns < n
        g = tl.load(dy + start + columns, mask=inside, other=0).to(wide)
        v = tl.load(y + start + columns, mask=inside, other=0).to(wide)
        tl.store(dx + start + columns, (v * (g - total)).to(dx.dtype.element_ty), inside)
