"""Who stands for an element, in Triton: a program knows its own index alone, `tl.program_id`.

A Triton program is a whole block, and which thread holds which element is the compiler's business.
So blocks and threads of CUDA are worked out here, from the element's place.

shapes  x: n = d * h * w elements of int32; y: n * 8
bytes   36 * n: 4 read and 32 written an element
FLOPs   none; ten integer divisions and remainders an element
"""

import triton
import triton.language as tl


@triton.jit
def kernel(out, x, n, h, w, bx, by, bz, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    column = i % w
    row = i // w % h
    plane = i // w // h
    mine = out + i.to(tl.int64) * 8
    tl.store(mine + 0, column // bx, mask=inside)
    tl.store(mine + 1, row // by, mask=inside)
    tl.store(mine + 2, plane // bz, mask=inside)
    tl.store(mine + 3, column % bx, mask=inside)
    tl.store(mine + 4, row % by, mask=inside)
    tl.store(mine + 5, plane % bz, mask=inside)
    tl.store(mine + 6, i, mask=inside)
    tl.store(mine + 7, tl.load(x + i, mask=inside), mask=inside)
