"""y = scale x where a key is visible to a query, else -inf, in Triton.

A lane stands for an element, and divides to find its query and key: the mask is worked out, so that
none is read.

shapes  x, y: (heads, queries, keys) as n elements, contiguous, of one floating dtype
bytes   at most 2 * n * itemsize: what is masked is not read
FLOPs   n
"""

import triton
import triton.language as tl

from ..pointwise_triton import span, wide


@triton.jit
def kernel(y, x, scale, n, queries, keys, BLOCK: tl.constexpr):
    i = span(BLOCK)
    visible = i % keys <= i // keys % queries + keys - queries
    v = wide(tl.load(x + i, mask=(i < n) & visible, other=0))
    out = tl.where(visible, v * scale, float("-inf"))
    tl.store(y + i, out.to(y.dtype.element_ty), mask=i < n)
