"""Triton kernels as they are written for a GPU. Their launches: triton_entries.py."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def square(y, x, n, BLOCK: tl.constexpr):
    """y = x * x. 8 n bytes, n FLOPs."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, v * v, mask=at < n)


@triton.jit
def softmax(y, x, n, BLOCK: tl.constexpr):
    """A row a program, whole in registers. 8 n bytes and 5 n FLOPs a row."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


@triton.jit
def softmax_online(y, x, n, BLOCK: tl.constexpr):
    """A row of any length a program: largest value and sum in one walk, y in a second."""
    row = tl.program_id(0)
    most, total = -float("inf"), 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
        larger = tl.maximum(most, tl.max(v, axis=0))
        total = total * tl.exp(most - larger) + tl.sum(tl.exp(v - larger), axis=0)
        most = larger
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + at, mask=at < n)
        tl.store(y + row * n + at, tl.exp(v - most) / total, mask=at < n)


@triton.jit
def layernorm(y, x, w, b, eps, n, BLOCK: tl.constexpr):
    """(x - mean) / sqrt(var + eps) * w + b by rows. 8 n bytes a row."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + row * n + at, mask=mask, other=0.0)
    mean = tl.sum(v, axis=0) / n
    centred = tl.where(mask, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / n + eps)
    out = centred * scale * tl.load(w + at, mask=mask) + tl.load(b + at, mask=mask)
    tl.store(y + row * n + at, out, mask=mask)


@triton.jit
def rmsnorm(y, x, w, eps, n, BLOCK: tl.constexpr):
    """x / sqrt(mean(x^2) + eps) * w in 16 bits, sums in float32. 4 n bytes a row."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, axis=0) / n + eps)
    k = tl.load(w + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y + row * n + at, (v * scale * k).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def histogram(count, x, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """tl.histogram of each program, added to the whole by atomics."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0)
    own = tl.histogram(v, BINS, mask=at < n)
    tl.atomic_add(count + tl.arange(0, BINS), own)


@triton.jit
def matmul(
    c, a, b, M, N, K, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """C = A B by tiles. 2 M N K FLOPs; A is read N / BN times, B M / BM times."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    kind: tl.constexpr = tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32
    total = tl.zeros((BM, BN), dtype=kind)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        p = tl.load(
            a + rows[:, None] * K + ks[None, :],
            mask=(rows[:, None] < M) & (ks[None, :] < K),
            other=0,
        )
        q = tl.load(
            b + ks[:, None] * N + cols[None, :],
            mask=(ks[:, None] < K) & (cols[None, :] < N),
            other=0,
        )
        total = tl.dot(p, q, total, input_precision=PRECISION, out_dtype=kind)
    tl.store(
        c + rows[:, None] * N + cols[None, :], total, mask=(rows[:, None] < M) & (cols[None, :] < N)
    )


@triton.jit
def matmul_split_k(
    c, a, b, M, N, K, SPLITS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """Each of SPLITS programs sums a part of K and adds it to C by atomics; C starts at 0."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(tl.program_id(2) * BK, K, SPLITS * BK):
        ks = start + tl.arange(0, BK)
        p = tl.load(
            a + rows[:, None] * K + ks[None, :],
            mask=(rows[:, None] < M) & (ks[None, :] < K),
            other=0.0,
        )
        q = tl.load(
            b + ks[:, None] * N + cols[None, :],
            mask=(ks[:, None] < K) & (cols[None, :] < N),
            other=0.0,
        )
        total = tl.dot(p, q, total)
    tl.atomic_add(
        c + rows[:, None] * N + cols[None, :], total, mask=(rows[:, None] < M) & (cols[None, :] < N)
    )


@triton.jit
def attention(o, q, k, v, lse, scale, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Causal flash attention of one head a program_id(1): softmax(q k^T scale) v, tile by tile."""
    head = tl.program_id(1) * n * D
    rows, ds = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    inside = rows[:, None] < n
    mine = tl.load(q + head + rows[:, None] * D + ds[None, :], mask=inside, other=0.0)
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    out = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):
        cols = start + tl.arange(0, BN)
        kt = tl.load(k + head + cols[None, :] * D + ds[:, None], mask=cols[None, :] < n, other=0.0)
        s = tl.dot(mine, kt) * scale
        s = tl.where((cols[None, :] <= rows[:, None]) & (cols[None, :] < n), s, -1e30)
        larger = tl.maximum(most, tl.max(s, axis=1))
        p = tl.exp(s - larger[:, None])
        shrink = tl.exp(most - larger)
        total = total * shrink + tl.sum(p, axis=1)
        vs = tl.load(v + head + cols[:, None] * D + ds[None, :], mask=cols[:, None] < n, other=0.0)
        out = out * shrink[:, None] + tl.dot(p.to(vs.dtype), vs)
        most = larger
    tl.store(o + head + rows[:, None] * D + ds[None, :], out / total[:, None], mask=inside)
    tl.store(lse + tl.program_id(1) * n + rows, most + tl.log(total), mask=rows < n)


@triton.jit
def attention_backward_v(
    dv, q, k, do, lse, scale, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """dV = P^T dO of causal attention, P made again from q, k and the log of its sums."""
    cols, ds = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, D)
    kk = tl.load(k + cols[:, None] * D + ds[None, :], mask=cols[:, None] < n, other=0.0)
    total = tl.zeros((BN, D), dtype=tl.float32)
    for start in range(0, n, BM):
        rows = start + tl.arange(0, BM)
        qt = tl.load(q + rows[None, :] * D + ds[:, None], mask=rows[None, :] < n, other=0.0)
        g = tl.load(do + rows[:, None] * D + ds[None, :], mask=rows[:, None] < n, other=0.0)
        norm = tl.load(lse + rows, mask=rows < n, other=0.0)
        pt = tl.exp(tl.dot(kk, qt) * scale - norm[None, :])
        pt = tl.where((cols[:, None] <= rows[None, :]) & (rows[None, :] < n), pt, 0.0)
        total = tl.dot(pt.to(g.dtype), g, total)
    tl.store(dv + cols[:, None] * D + ds[None, :], total, mask=cols[:, None] < n)


@triton.jit
def cumsum(y, x, n, BLOCK: tl.constexpr):
    """Prefix sums by rows."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=0)
    tl.store(y + row * n + at, tl.cumsum(v, axis=0), mask=at < n)


@triton.jit
def affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def linear_recurrence(y, a, b, n, BLOCK: tl.constexpr):
    """h[t] = a[t] h[t-1] + b[t] by rows: associative_scan of affine maps."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    p = tl.load(a + row * n + at, mask=at < n, other=1.0)
    q = tl.load(b + row * n + at, mask=at < n, other=0.0)
    _, h = tl.associative_scan((p, q), 0, affine)
    tl.store(y + row * n + at, h, mask=at < n)


@triton.jit
def sort_rows(y, x, N: tl.constexpr):
    """Each row in order, by a bitonic network."""
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y + at, tl.sort(tl.load(x + at)))


@triton.jit
def cross_entropy(loss, x, label, n, BLOCK: tl.constexpr):
    """log sum exp(x) - x[label] by rows, bfloat16 in, float32 out. 2 n bytes a row."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    most = tl.max(v, axis=0)
    total = tl.log(tl.sum(tl.exp(v - most), axis=0)) + most
    own = tl.load(x + row * n + tl.load(label + row)).to(tl.float32)
    tl.store(loss + row, total - own)


@triton.jit
def dropout(y, x, p, seed, n, BLOCK: tl.constexpr):
    """x / (1 - p) where a number of Philox is above p, else 0."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    keep = tl.rand(seed, at) > p
    tl.store(y + at, tl.where(keep, v / (1 - p), 0.0), mask=at < n)


@triton.jit
def scatter_add(y, x, index, n, BLOCK: tl.constexpr):
    """y[index[i]] += x[i] by atomics."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.atomic_add(y + tl.load(index + at, mask=at < n), v, mask=at < n)


@triton.jit
def locked_add(y, lock, x, n, BLOCK: tl.constexpr):
    """y += each program's row, under a lock by atomic_cas and atomic_xchg."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(y + at, tl.load(y + at, mask=at < n) + v, mask=at < n)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def gather_rows(y, table, index, n, BLOCK: tl.constexpr):
    """y[r] = table[index[r]]: an embedding."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(table + tl.load(index + row) * n + at, mask=at < n)
    tl.store(y + row * n + at, v, mask=at < n)


@triton.jit
def gather_in_tile(y, x, index, N: tl.constexpr):
    """y[i] = x[index[i]] within a tile: tl.gather."""
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y + at, tl.gather(tl.load(x + at), tl.load(index + at), axis=0))


@triton.jit
def convolve(y, x, w, H, W, C: tl.constexpr, F: tl.constexpr, BLOCK: tl.constexpr):
    """3 x 3 convolution of a (H, W, C) image to (H, W, F), padding 1, a dot for each tap."""
    at, cs, fs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, C), tl.arange(0, F)
    i, j = at // W, at % W
    total = tl.zeros((BLOCK, F), dtype=tl.float32)
    for tap in tl.static_range(9):
        r, c = i + tap // 3 - 1, j + tap % 3 - 1
        inside = (at < H * W) & (r >= 0) & (r < H) & (c >= 0) & (c < W)
        v = tl.load(x + (r * W + c)[:, None] * C + cs[None, :], mask=inside[:, None], other=0.0)
        k = tl.load(w + tap * C * F + cs[:, None] * F + fs[None, :])
        total = tl.dot(v, k, total)
    tl.store(y + at[:, None] * F + fs[None, :], total, mask=at[:, None] < H * W)


@triton.jit
def transpose(y, x, rows, columns, BLOCK: tl.constexpr):
    """y = x^T by tiles: the layout changes through shared memory."""
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(
        x + r[:, None] * columns + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < columns)
    )
    tl.store(
        y + c[:, None] * rows + r[None, :],
        tl.trans(v),
        mask=(c[:, None] < columns) & (r[None, :] < rows),
    )


@triton.jit
def argmax_rows(index, most, x, n, BLOCK: tl.constexpr):
    """Largest value of each row and where it is first."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    value, place = tl.max(v, axis=0, return_indices=True)
    tl.store(index + row, place)
    tl.store(most + row, value)


@triton.jit
def newton_root(y, x, n, BLOCK: tl.constexpr):
    """Square roots by Newton's steps until all of a tile are close: a while loop on data."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=1.0)
    r = tl.where(v > 1, v, 1.0)
    while tl.max(tl.abs(r * r - v) / v, axis=0) > 1e-6:
        r = 0.5 * (r + v / r)
    tl.store(y + at, r, mask=at < n)


@triton.jit
def tell(x, BLOCK: tl.constexpr):
    """Prints what it loads."""
    tl.device_print("x: ", tl.load(x + tl.arange(0, BLOCK)))


@triton.jit
def tensor_descriptors(y, x, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Twice a matrix by tensor descriptors, which mask what is outside. 8 M N bytes."""
    row = tl.program_id(0) * BM
    p = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    q = tl.make_tensor_descriptor(y, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    for col in range(0, N, BN):
        q.store([row, col], p.load([row, col]) * 2)


@triton.jit
def welford(mean, variance, x, n, BLOCK: tl.constexpr):
    """Mean and variance by rows: tl.reduce of triples."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0)
    w = tl.where(at < n, 1.0, 0.0)
    m, s, count = tl.reduce((v, tl.zeros_like(v), w), 0, joined)
    tl.store(mean + row, m)
    tl.store(variance + row, s / count)


@triton.jit
def joined(ma, sa, ca, mb, sb, cb):
    count = ca + cb
    share = tl.where(count == 0, 0.0, cb / count)
    d = mb - ma
    return ma + d * share, sa + sb + d * d * ca * share, count


@triton.jit
def swish_backward(dx, x, dy, n, BLOCK: tl.constexpr):
    """Gradient of x sigmoid(x). 12 n bytes."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    s = tl.sigmoid(v)
    tl.store(dx + at, tl.load(dy + at, mask=at < n) * s * (1 + v * (1 - s)), mask=at < n)


@triton.jit
def rotary(q, cos, sin, n, D: tl.constexpr):
    """Rotary embedding in place: halves of each row turned by the row's angles."""
    row, at = tl.program_id(0), tl.arange(0, D // 2)
    a, b = tl.load(q + row * D + at), tl.load(q + row * D + D // 2 + at)
    c, s = tl.load(cos + row * (D // 2) + at), tl.load(sin + row * (D // 2) + at)
    tl.store(q + row * D + at, a * c - b * s)
    tl.store(q + row * D + D // 2 + at, b * c + a * s)


@triton.jit
def deviation(mean, root, x, n, BLOCK: tl.constexpr):
    """Mean and deviation by rows: lanes, and warps too many, store sums that differ in rounding."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0)
    m = tl.sum(v, axis=0) / n
    centred = tl.where(at < n, v - m, 0.0)
    tl.store(mean + row, m)
    tl.store(root + row, tl.sqrt(tl.sum(centred * centred, axis=0) / n))
