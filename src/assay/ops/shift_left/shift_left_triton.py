"""x[i] = x[i + 1] in place in Triton: a program loads all that it needs before it stores.

The compiler keeps a program's loads and stores of the same addresses in order, by a barrier where
threads exchange; across programs nothing does, so their edges are kept by a first kernel.

shapes  x: n elements; edges: one a program
bytes   2 * n * itemsize
FLOPs   none
"""

import triton
import triton.language as tl


@triton.jit
def edges_kernel(edges, x, n, count, STEP: tl.constexpr, BLOCK: tl.constexpr):
    b = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = (b.to(tl.int64) + 1) * STEP
    first = tl.load(x + tl.where(i < n, i, n - 1), mask=b < count)
    tl.store(edges + b, first, mask=b < count)


@triton.jit
def kernel(x, edges, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    last = tl.arange(0, BLOCK) == BLOCK - 1
    inside = i < n - 1
    next = tl.load(x + i + 1, mask=inside & ~last)
    next = tl.where(last, tl.load(edges + tl.program_id(0)), next)
    tl.debug_barrier()  # all of the program has read before any of it writes
    tl.store(x + i, next, mask=inside)
