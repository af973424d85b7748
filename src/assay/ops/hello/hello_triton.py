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
    value = tl.load(x + i, mask=inside)
    # Eight numbers an element, joined so that they are stored as they lie: neighbours side by side.
    first = tl.join(tl.join(column // bx, row % by), tl.join(plane // bz, i))
    second = tl.join(tl.join(row // by, plane % bz), tl.join(column % bx, value))
    who = tl.reshape(tl.join(first, second), [BLOCK * 8])
    at = tl.program_id(0).to(tl.int64) * (BLOCK * 8) + tl.arange(0, BLOCK * 8)
    tl.store(out + at, who, mask=at // 8 < n)
