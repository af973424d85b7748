"""y = [a, b] along the last dimension in Triton: one program a piece of a row.

shapes  a: (rows, p); b: (rows, q); y: (rows, p + q); contiguous, of one dtype
bytes   2 * rows * (p + q) * itemsize
FLOPs   none
"""

import triton
import triton.language as tl


@triton.jit
def kernel(y, a, b, p, q, BLOCK: tl.constexpr):
    pieces = tl.cdiv(p + q, BLOCK)
    row = (tl.program_id(0) // pieces).to(tl.int64)
    at = tl.program_id(0) % pieces * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(a + row * p + at, mask=at < p)
    right = tl.load(b + row * q + at - p, mask=(at >= p) & (at < p + q))
    tl.store(y + row * (p + q) + at, tl.where(at < p, left, right), mask=at < p + q)
