"""dx = 2 x dy in Triton: one program for BLOCK neighbouring elements, masked at the end.

shapes  dx, dy, x: n elements, contiguous, of one dtype
bytes   3 * n * itemsize: two read and one written for each element
FLOPs   2 * n: a sixth of a FLOP a byte in float32, so memory decides
"""

import triton
import triton.language as tl


@triton.jit
def kernel(dy, x, dx, n, BLOCK: tl.constexpr):
    # In 64 bits: past 2**31 elements a 32-bit index would wrap around.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    wide: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    v = tl.load(x + i, mask=i < n).to(wide)
    g = tl.load(dy + i, mask=i < n).to(wide)
    # The factor 2 comes last: it is exact, and 2 x might overflow where the product does not.
    tl.store(dx + i, (v * g * 2).to(dx.dtype.element_ty), mask=i < n)
