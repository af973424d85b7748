"""y = a + b in Triton: one program adds BLOCK neighbouring elements, masked at the end.

shapes  y, a, b: n elements, contiguous, of one dtype
bytes   3 * n * itemsize: two read and one written for each element
FLOPs   n
"""

import triton
import triton.language as tl


@triton.jit
def kernel(y, a, b, n, BLOCK: tl.constexpr):
    # In 64 bits: past 2**31 elements a 32-bit index would wrap around.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    u = tl.load(a + i, mask=i < n)
    v = tl.load(b + i, mask=i < n)
    if u.dtype == tl.bfloat16:  # a sum in float32 is rounded once, by the store
        u = u.to(tl.float32)
        v = v.to(tl.float32)
    tl.store(y + i, (u + v).to(y.dtype.element_ty), mask=i < n)
