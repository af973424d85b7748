// y[b] = p[b] @ q[b]: a thread an element, and tiles in shared memory.
//
// bmm_naive  one thread an element: a warp's reads of q are neighbours, those of p are one address
// bmm_tiled  a block computes 64 x 64 of y, 16 of k at a time: its tiles of p and q are read from
//            memory once and used 64 times; a thread has 4 x 4 sums in registers
//
// Its gradients are products too, of a matrix that lies transposed: dp = dy q^T, dq = p^T dy. The
// tiled kernel reads such a matrix as it lies, neighbours by neighbours, and turns it in its tile.
//
// shapes  p: (batch, m, k), or (batch, k, m) where P_TURNED; q: (batch, k, n), or (batch, n, k)
//         where Q_TURNED; y: (batch, m, n); batch is the grid's z
// bytes   batch * (m k + k n + m n) * sizeof(T), if every element is read once
// FLOPs   2 * batch * m * n * k
#include "assay.cuh"

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

template <typename T, bool P_TURNED = false, bool Q_TURNED = false>
__global__ void __launch_bounds__(256)
    bmm_tiled(T* y, const T* p, const T* q, int m, int n, int k) {
  using A = assay::accumulator<T>;
  constexpr int SIDE = 64, DEPTH = 16, EACH = 4;
  // p's tile lies transposed, so that a thread's four rows are neighbours; one longer, for banks.
  __shared__ A of_p[DEPTH][SIDE + 1], of_q[DEPTH][SIDE + Q_TURNED];
  const long long b = blockIdx.z;
  p += b * m * k;
  q += b * k * n;
  y += b * m * n;
  const int i0 = blockIdx.y * SIDE, j0 = blockIdx.x * SIDE;
  const int me = threadIdx.y * 16 + threadIdx.x;

  A sum[EACH][EACH] = {};
  for (int c0 = 0; c0 < k; c0 += DEPTH) {
#pragma unroll
    for (int e = me; e < SIDE * DEPTH; e += 256) {
      const int r = P_TURNED ? e % SIDE : e / DEPTH, c = P_TURNED ? e / SIDE : e % DEPTH;
      const bool inside = i0 + r < m && c0 + c < k;
      const long long at = P_TURNED ? static_cast<long long>(c0 + c) * m + i0 + r
                                    : static_cast<long long>(i0 + r) * k + c0 + c;
      of_p[c][r] = inside ? assay::to_float(p[at]) : A(0);
    }
#pragma unroll
    for (int e = me; e < SIDE * DEPTH; e += 256) {
      const int c = Q_TURNED ? e % DEPTH : e / SIDE, r = Q_TURNED ? e / DEPTH : e % SIDE;
      const bool inside = c0 + c < k && j0 + r < n;
      const long long at = Q_TURNED ? static_cast<long long>(j0 + r) * k + c0 + c
                                    : static_cast<long long>(c0 + c) * n + j0 + r;
      of_q[c][r] = inside ? assay::to_float(q[at]) : A(0);
    }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < DEPTH; ++c) {
      if (c0 + c >= k) break;  // beyond k lie zeros, and 0 * inf would be NaN
      A left[EACH], right[EACH];
#pragma unroll
      for (int e = 0; e < EACH; ++e) {
        left[e] = of_p[c][threadIdx.y * EACH + e];
        right[e] = of_q[c][threadIdx.x + 16 * e];
      }
#pragma unroll
      for (int r = 0; r < EACH; ++r)
#pragma unroll
        for (int s = 0; s < EACH; ++s) sum[r][s] += left[r] * right[s];
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < EACH; ++r)
#pragma unroll
    for (int s = 0; s < EACH; ++s) {
      const int i = i0 + threadIdx.y * EACH + r, j = j0 + threadIdx.x + 16 * s;
      if (i < m && j < n) y[static_cast<long long>(i) * n + j] = assay::from_float<T>(sum[r][s]);
    }
}
