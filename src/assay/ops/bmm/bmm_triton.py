"""y[b] = p[b] @ q[b] in Triton: one program an M x N tile of y, K of the depth at a time.

`tl.dot` goes to tensor cores for 16-bit dtypes; float32 is asked for as IEEE float32. The gradients
are products of a matrix that lies transposed, which is read as it lies.

shapes  p: (batch, m, k), or (batch, k, m) where P_TURNED; q: (batch, k, n), or (batch, n, k) where
        Q_TURNED; y: (batch, m, n); contiguous, of one floating dtype
bytes   batch * (m k + k n + m n) * itemsize, if every element is read once
FLOPs   2 * batch * m * n * k
"""

import triton
import triton.language as tl


@triton.jit
def kernel(
    y,
    p,
    q,
    m,
    n,
    k,
    P_TURNED: tl.constexpr,
    Q_TURNED: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
):
    dtype: tl.constexpr = tl.float64 if p.dtype.element_ty == tl.float64 else tl.float32
    b = tl.program_id(2).to(tl.int64)
    i = tl.program_id(1) * M + tl.arange(0, M)[:, None]
    j = tl.program_id(0) * N + tl.arange(0, N)[None, :]
    row = tl.arange(0, K)[:, None]
    column = tl.arange(0, K)[None, :]
    # Of the first tiles; each step adds as much to all of an address.
    left = (
        p + b * m * k + (column.to(tl.int64) * m + i if P_TURNED else i.to(tl.int64) * k + column)
    )
    right = q + b * k * n + (j.to(tl.int64) * k + row if Q_TURNED else row.to(tl.int64) * n + j)
    sum = tl.zeros([M, N], dtype)
    for start in range(0, k, K):
        of_p = tl.load(left, mask=(i < m) & (column < k - start), other=0)
        of_q = tl.load(right, mask=(row < k - start) & (j < n), other=0)
        sum = tl.dot(of_p, of_q, sum, input_precision="ieee", out_dtype=dtype)
        left += K * tl.cast(m, tl.int64) if P_TURNED else K
        right += K if Q_TURNED else K * tl.cast(n, tl.int64)
    at = y + b * m * n + i.to(tl.int64) * n + j
    tl.store(at, sum.to(y.dtype.element_ty), mask=(i < m) & (j < n))
