// y[b] = p[b] @ q[b]: a thread an element, and tiles in shared memory; by tensor cores, of 16-bit
// numbers, in bmm_tensor.cuh.
//
// bmm_naive  one thread one element: a warp's reads of q are neighbours, those of p are one address
// bmm_tiled  a block computes SIDE x SIDE of y, DEPTH of k at a time, from tiles of p and q that it
//            reads once; a thread has EACH x EACH sums in registers, for which it reads 2 * EACH
//            numbers of shared memory, 16 bytes at a time. The next tiles come from memory meanwhile.
//
// Its gradients are products too, of a matrix that lies transposed: dp = dy q^T, dq = p^T dy. The
// tiled kernel reads such a matrix as it lies, neighbours by neighbours, and turns it in its tile.
//
// shapes  p: (batch, m, k), or (batch, k, m) where P_TURNED; q: (batch, k, n), or (batch, n, k)
//         where Q_TURNED; y: (batch, m, n); batch is the grid's z
// bytes   batch * (m k + k n + m n) * sizeof(T), if every element is read once
// FLOPs   2 * batch * m * n * k
#include "assay.cuh"
#include "bmm_tensor.cuh"

template <typename T>
__global__ void bmm_naive(T* y, const T* p, const T* q, int m, int n, int k) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  const long long b = blockIdx.z;
  p += (b * m + i) * k;
  q += b * k * n + j;
  assay::accumulator<T> sum = 0;
  for (int c = 0; c < k; ++c)
    sum += assay::to_float(p[c]) * assay::to_float(q[static_cast<long long>(c) * n]);
  y[(b * m + i) * n + j] = assay::from_float<T>(sum);
}

// A block's tile of p or of q: SIDE lines of it, DEPTH of k. ALONG: a line's numbers lie side by side,
// as p's rows do; else its neighbours are of other lines, as in q's rows. Beyond the matrix lie zeros.
template <typename T, int SIDE, int DEPTH, int THREADS, bool ALONG>
struct Tile {
  using A = assay::accumulator<T>;
  // 16 bytes more than SIDE numbers, so that what is put there transposed meets other banks: of a
  // warp's lanes two share one at most.
  using Place = A[DEPTH][SIDE + assay::widest<A>];
  static constexpr int MINE = SIDE * DEPTH / THREADS;
  static constexpr int DOWN = ALONG ? THREADS / DEPTH : 0, ON = ALONG ? 0 : THREADS / SIDE;
  static_assert(THREADS % SIDE == 0 && THREADS % DEPTH == 0, "a thread's numbers lie evenly apart");
  const T* at;
  const int line, deep, lines, k;  // of the first of a thread's numbers; the others are DOWN and ON
  const int first;
  A v[MINE];

  __device__ __forceinline__ Tile(const T* x, int lines, int k, int first)
      : line(ALONG ? threadIdx.x / DEPTH : threadIdx.x % SIDE),
        deep(ALONG ? threadIdx.x % DEPTH : threadIdx.x / SIDE),
        lines(lines),
        k(k),
        first(first) {
    at = x + (ALONG ? static_cast<long long>(first + line) * k + deep
                    : static_cast<long long>(deep) * lines + first + line);
  }
  __device__ __forceinline__ void fetch(int c0) {
    const long long apart = ALONG ? static_cast<long long>(DOWN) * k
                                  : static_cast<long long>(ON) * lines;
#pragma unroll
    for (int u = 0; u < MINE; ++u) {
      const bool inside = first + line + u * DOWN < lines && c0 + deep + u * ON < k;
      v[u] = inside ? assay::to_float(at[u * apart]) : A(0);
    }
    at += ALONG ? DEPTH : static_cast<long long>(DEPTH) * lines;
  }
  __device__ __forceinline__ void put(Place& to) const {
#pragma unroll
    for (int u = 0; u < MINE; ++u) to[deep + u * ON][line + u * DOWN] = v[u];
  }
};

template <typename T, int SIDE, int EACH, int DEPTH, bool P_TURNED = false, bool Q_TURNED = false>
__global__ void __launch_bounds__((SIDE / EACH) * (SIDE / EACH), 2)
    bmm_tiled(T* y, const T* p, const T* q, int m, int n, int k) {
  using A = assay::accumulator<T>;
  constexpr int WIDE = assay::widest<A>, ACROSS = SIDE / EACH, APART = ACROSS * WIDE;
  using OfP = Tile<T, SIDE, DEPTH, ACROSS * ACROSS, !P_TURNED>;
  using OfQ = Tile<T, SIDE, DEPTH, ACROSS * ACROSS, Q_TURNED>;
  __shared__ __align__(16) typename OfP::Place of_p[2];
  __shared__ __align__(16) typename OfQ::Place of_q[2];
  const long long b = blockIdx.z;
  p += b * m * k;
  q += b * k * n;
  y += b * m * n;
  const int i0 = blockIdx.y * SIDE, j0 = blockIdx.x * SIDE;
  // A thread's rows are neighbours, so that few addresses of of_p are read by a warp; its columns are
  // EACH / WIDE pieces of 16 bytes, of which neighbours have neighbours.
  const int down = threadIdx.x / ACROSS * EACH, along = threadIdx.x % ACROSS * WIDE;

  OfP of_rows(p, m, k, i0);
  OfQ of_columns(q, n, k, j0);
  of_rows.fetch(0);
  of_columns.fetch(0);
  of_rows.put(of_p[0]);
  of_columns.put(of_q[0]);
  __syncthreads();

  A sum[EACH][EACH] = {};
  for (int c0 = 0, now = 0; c0 < k; c0 += DEPTH, now ^= 1) {
    const bool more = c0 + DEPTH < k;
    if (more) {
      of_rows.fetch(c0 + DEPTH);
      of_columns.fetch(c0 + DEPTH);
    }
#pragma unroll
    for (int c = 0; c < DEPTH; ++c) {
      assay::Vec<A, WIDE> left[EACH / WIDE], right[EACH / WIDE];
#pragma unroll
      for (int e = 0; e < EACH / WIDE; ++e) {
        left[e] = assay::load<WIDE>(&of_p[now][c][down + e * WIDE]);
        right[e] = assay::load<WIDE>(&of_q[now][c][along + e * APART]);
      }
#pragma unroll
      for (int r = 0; r < EACH; ++r)
#pragma unroll
        for (int s = 0; s < EACH; ++s)
          sum[r][s] += left[r / WIDE][r % WIDE] * right[s / WIDE][s % WIDE];
    }
    if (more) {
      of_rows.put(of_p[now ^ 1]);
      of_columns.put(of_q[now ^ 1]);
    }
    __syncthreads();
  }

  const bool whole = n % WIDE == 0 && assay::aligned<WIDE * sizeof(T)>(y);
#pragma unroll
  for (int r = 0; r < EACH; ++r) {
    const int i = i0 + down + r;
    if (i >= m) return;
    T* const row = y + static_cast<long long>(i) * n;
#pragma unroll
    for (int e = 0; e < EACH / WIDE; ++e) {
      const int j = j0 + along + e * APART;
      assay::Vec<T, WIDE> v;
#pragma unroll
      for (int s = 0; s < WIDE; ++s) v[s] = assay::from_float<T>(sum[r][e * WIDE + s]);
      if (whole && j < n) {
        assay::store(row + j, v);
      } else {
#pragma unroll
        for (int s = 0; s < WIDE; ++s)
          if (j + s < n) row[j + s] = v[s];
      }
    }
  }
}
