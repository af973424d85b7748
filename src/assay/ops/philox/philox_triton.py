"""y[4 t + j] = the j-th uniform number of counter offset + t, by Triton's own Philox-4x32-10.

A lane makes the four numbers of one counter: they need no state but where the lane stands.

shapes  bounds: (low, high), float32; state: (seed, offset), int64; y: n of float32
bytes   4 * n written; 24 read
FLOPs   24 operations a number: 21 of integers (for four numbers ten rounds of two products, the two
        halves of one counted once, four xors and two additions; a shift) and 3 of floats
"""

import triton
import triton.language as tl


@triton.jit
def uniform(bits):
    return (bits >> 8).to(tl.float32) * 5.960464477539063e-08  # 2^-24


@triton.jit
def kernel(y, bounds, state, n, BLOCK: tl.constexpr):
    t = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    counter = tl.load(state + 1) + t
    low = counter.to(tl.uint32)
    high = (counter >> 32).to(tl.uint32)
    zero = low * 0
    a, b, c, d = tl.philox(tl.load(state), low, high, zero, zero)
    lowest = tl.load(bounds)
    width = tl.load(bounds + 1) - lowest
    at = 4 * t
    tl.store(y + at, lowest + uniform(a) * width, mask=at < n)
    tl.store(y + at + 1, lowest + uniform(b) * width, mask=at + 1 < n)
    tl.store(y + at + 2, lowest + uniform(c) * width, mask=at + 2 < n)
    tl.store(y + at + 3, lowest + uniform(d) * width, mask=at + 3 < n)
