"""y[b] = how many of x are b in Triton: an atomic addition for each of BLOCK neighbouring elements.

shapes  x: n ints in [0, bins); y: bins counters of 64 bits, 0 at first
bytes   4 * n, and 8 * bins
FLOPs   n integer additions
"""

import triton
import triton.language as tl


@triton.jit
def kernel(y, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    bin = tl.load(x + i, mask=i < n, other=0)
    one = tl.full([BLOCK], 1, tl.int64)
    tl.atomic_add(y + bin, one, mask=i < n)
