"""Counting x into slots in Triton: its atomics on BLOCK neighbouring elements.

Triton has no loop that ends for each element alone, so what needs one (a sum by compare-and-swap,
or by exchange) is done with `tl.atomic_add`.

shapes  x, slot: n; y: (9, slots) of int32, or (2, slots) of x's dtype
bytes   8 * n (float32, int32), 12 * n (float64)
FLOPs   9 * n operations of integers, each an atomic; float_kernel 2 * n of floats
"""

import triton
import triton.language as tl


@triton.jit
def kernel(y, x, slot, n, slots, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + i, mask=inside, other=0)
    at = y + tl.load(slot + i, mask=inside, other=0)
    tl.atomic_add(at, v, mask=inside)
    tl.atomic_add(at + slots, -v, mask=inside)
    tl.atomic_max(at + 2 * slots, v, mask=inside)
    tl.atomic_min(at + 3 * slots, v, mask=inside)
    tl.atomic_and(at + 4 * slots, v, mask=inside)
    tl.atomic_or(at + 5 * slots, v, mask=inside)
    tl.atomic_xor(at + 6 * slots, v, mask=inside)
    tl.atomic_add(at + 7 * slots, v, mask=inside)
    tl.atomic_add(at + 8 * slots, v, mask=inside)


@triton.jit
def float_kernel(y, x, slot, n, slots, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + i, mask=inside, other=0)
    at = y + tl.load(slot + i, mask=inside, other=0)
    tl.atomic_add(at, v, mask=inside)
    tl.atomic_max(at + slots, v, mask=inside)
