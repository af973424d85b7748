"""y[j, i] = x[i, j] in Triton: one program a tile; the compiler takes it through shared memory.

Programs go down columns of x, so that those which run together write along rows of y: scattered
reads cost memory less than scattered writes.

shapes  x: (m, n); y: (n, m); contiguous, of one dtype
bytes   2 * m * n * itemsize
FLOPs   none
"""

import triton
import triton.language as tl


@triton.jit
def kernel(y, x, m, n, TILE: tl.constexpr):
    down = tl.cdiv(m, TILE)
    i = (tl.program_id(0) % down * TILE).to(tl.int64) + tl.arange(0, TILE)
    j = (tl.program_id(0) // down * TILE).to(tl.int64) + tl.arange(0, TILE)
    rows, columns = i[:, None], j[None, :]
    v = tl.load(x + rows * n + columns, mask=(rows < m) & (columns < n))
    rows, columns = j[:, None], i[None, :]
    tl.store(y + rows * m + columns, tl.trans(v), mask=(rows < n) & (columns < m))
