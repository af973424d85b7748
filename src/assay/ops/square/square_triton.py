"""y = x * x in Triton: one program squares BLOCK neighbouring elements, masked at the end.

shapes  x, y: n elements, contiguous, of one dtype
bytes   2 * n * itemsize: each element read once and written once
FLOPs   n: an eighth of a FLOP a byte in float32, so memory decides
"""

import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    # In 64 bits: past 2**31 elements a 32-bit index would wrap around.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    # A product of two bfloat16 fits float32 and is rounded once, by the store. (Without this the
    # interpreter, which has no bfloat16, multiplies the bits as integers.)
    if v.dtype == tl.bfloat16:
        v = v.to(tl.float32)
    tl.store(y + i, (v * v).to(y.dtype.element_ty), mask=i < n)
