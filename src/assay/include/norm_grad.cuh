// Gradients of rows normalised (norm.cuh has the forms).
//
//   With h = (x - mean) rstd and g = dy w:
//   dx = rstd (g - mean(g) - h mean(g h)), without mean(g) in rmsnorm;
//   dw = sum over rows of dy h, db = sum over rows of dy.
//
// A row in registers is read once. Mean and rstd are worked out again, for reading them would save
// nothing. mean(g h) is rstd times the mean of g (x - mean), so that it is summed beside the squares:
// a row waits for two sums over its threads (rmsnorm one), while the next rows are on their way.
// Sums over rows are kept in registers by a fixed set of threads over many rows, written once as
// partial sums, and added in a fixed order.
#pragma once

#include "norm.cuh"

namespace assay {

// K sums over the threads of a row at once; each of them gets all. It ends without a barrier: call
// it with other `scratch` before it is called with the same again.
template <int THREADS, int K, typename A>
__device__ __forceinline__ void row_sums(A (&v)[K], A (&scratch)[K][THREADS / 32]) {
#pragma unroll
  for (int k = 0; k < K; ++k) v[k] = warp_reduce(v[k], Sum{});
  if constexpr (THREADS > 32) {
    if (threadIdx.x % 32 == 0)
#pragma unroll
      for (int k = 0; k < K; ++k) scratch[k][threadIdx.x / 32] = v[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < K; ++k) {
      v[k] = scratch[k][0];
#pragma unroll
      for (int warp = 1; warp < THREADS / 32; ++warp) v[k] += scratch[k][warp];
    }
  }
}

// Many rows by each set of THREADS threads. partial: (sets, 2, n) sums of dy h and of dy; rmsnorm
// (sets, n). A set that has no row writes zeros. AHEAD rows are on their way while one is worked on:
// dynamic shared memory is AHEAD * 2 * VECS * 16 bytes for each thread of a block.
template <bool CENTRED, int AHEAD, typename T, int THREADS, int VECS>
__device__ __forceinline__ void norm_grad_held(T* dx, accumulator<T>* partial, const T* dy,
                                               const T* x, const T* w, long long rows, long long n,
                                               accumulator<T> eps) {
  using A = accumulator<T>;
  using Stream = Streamed<T, THREADS, VECS>;
  constexpr int N = widest<T>, SUMS = CENTRED ? 3 : 2;
  extern __shared__ __align__(16) unsigned char next[];
  __shared__ A of_x[1][THREADS / 32], of_products[CENTRED ? 1 : 2][SUMS][THREADS / 32];
  const int count = int(n);
  const T zero = from_float<T>(0);
  const bool whole = whole_vectors<T>(n, dx, dy, x, w), full = count == THREADS * VECS * N;
  const long long sets = static_cast<long long>(gridDim.x) * rows_of_block<THREADS>;
  const long long set = own_row<THREADS>();

  int place = 0;  // of a row among those on their way
  const auto send_for = [&](long long row) {
    if (whole && row < rows) {
      Stream(next, 2 * place).send_for(x + row * n, count);
      Stream(next, 2 * place + 1).send_for(dy + row * n, count);
    }
    commit_copies();
    place = (place + 1) % AHEAD;
  };
#pragma unroll
  for (int ahead = 0; ahead < AHEAD; ++ahead) send_for(set + ahead * sets);

  Held<T, THREADS, VECS> scale, g, v;
  scale.load(w, count, whole, zero);
  A of_w[VECS][N] = {}, of_b[VECS][N] = {};
  int turn = 0;
  for (long long row = set; row < rows; row += sets, turn ^= 1) {
    if (whole) {
      await_copies<AHEAD - 1>();
      Stream(next, 2 * place).receive(v, count, zero);
      Stream(next, 2 * place + 1).receive(g, count, zero);
    } else {
      v.load(x + row * n, count, false, zero);
      g.load(dy + row * n, count, false, zero);
    }
    send_for(row + AHEAD * sets);

    if constexpr (CENTRED) {
      A sum[1] = {v.over(Sum{})};
      row_sums<THREADS>(sum, of_x);
      const A mean = sum[0] / count;
      v.change([&](A a, int, int) { return a - mean; });
      if (!full)
        v.change([&](A c, int u, int j) { return v.index(whole, u, j) < count ? c : A(0); });
    }
    A sums[SUMS] = {};  // of (x - mean)^2, g (x - mean) and g: beyond the row all are 0
    g.each([&](A d, int u, int j) {
      const A c = v.v[u][j], scaled = d * scale.v[u][j];
      sums[0] += c * c;
      sums[1] += scaled * c;
      if constexpr (CENTRED) sums[2] += scaled;
    });
    row_sums<THREADS>(sums, of_products[CENTRED ? 0 : turn]);
    const A rstd = reciprocal_root(sums[0] / count + eps);
    const A along = sums[1] / count * rstd, level = CENTRED ? sums[SUMS - 1] / count : A(0);
    g.change([&](A d, int u, int j) {
      const A h = v.v[u][j] * rstd;
      of_w[u][j] += d * h;
      if constexpr (CENTRED) of_b[u][j] += d;
      return rstd * (d * scale.v[u][j] - level - h * along);
    });
    g.store(dx + row * n, count, whole);
  }

  partial += set * (CENTRED ? 2 : 1) * n;
  // 16 bytes at a time: one by one, a sector would be written by as many stores as it has numbers.
  constexpr int WIDE = widest<A>;
#pragma unroll
  for (int u = 0; u < VECS; ++u)
#pragma unroll
    for (int piece = 0; piece < N; piece += WIDE) {
      Vec<A, WIDE> to_w, to_b;
#pragma unroll
      for (int j = 0; j < WIDE; ++j) {
        to_w[j] = of_w[u][piece + j];
        to_b[j] = of_b[u][piece + j];
      }
      if (whole) {
        const int i = v.index(true, u, piece);
        if (i >= count) continue;
        store(partial + i, to_w);
        if constexpr (CENTRED) store(partial + n + i, to_b);
        continue;
      }
#pragma unroll
      for (int j = 0; j < WIDE; ++j) {
        const int i = v.index(false, u, piece + j);
        if (i >= count) continue;
        partial[i] = to_w[j];
        if constexpr (CENTRED) partial[n + i] = to_b[j];
      }
    }
}

// dx of one row, and what `norm_columns` needs of it: statistics[row] is its mean and rstd.
template <bool CENTRED, typename T, int BLOCK>
__device__ __forceinline__ void norm_grad_walked(T* dx, accumulator<T>* kept, const T* dy,
                                                 const T* x, const T* w, long long n,
                                                 accumulator<T> eps) {
  using A = accumulator<T>;
  const long long row = blockIdx.x;
  const auto s = statistics<CENTRED, BLOCK>(x + row * n, n, eps);
  if (threadIdx.x == 0) {
    kept[2 * row] = s.mean;
    kept[2 * row + 1] = s.rstd;
  }
  T* const to = dx + row * n;
  const T* const in[3] = {dy + row * n, x + row * n, w};
  A sum = 0, product = 0;
  walk<BLOCK>(in, to, n, [&](auto& v, long long, auto count) {
#pragma unroll
    for (int j = 0; j < count.value; ++j) {
      const A scaled = v[0][j] * v[2][j];
      product += scaled * ((v[1][j] - s.mean) * s.rstd);
      sum += scaled;
    }
  });
  product = block_reduce<BLOCK>(product, Sum{}) / A(n);
  sum = CENTRED ? block_reduce<BLOCK>(sum, Sum{}) / A(n) : A(0);
  walk<BLOCK>(in, to, n, [&](auto& v, long long i, auto count) {
#pragma unroll
    for (int j = 0; j < count.value; ++j) {
      const A h = (v[1][j] - s.mean) * s.rstd;
      const A scaled = v[0][j] * v[2][j];
      v[0][j] = s.rstd * (scaled - sum - h * product);
    }
    store(to + i, v[0]);
  });
}

// K sums over rows of each column, by a block of COLUMNS x LANES threads: every LANES-th row each,
// then in a tree. `add(sums, row, column)` adds one row's terms; all threads of a column get the
// sums. It ends without a barrier: once a kernel.
template <int COLUMNS, int LANES, int K, typename A, typename F>
__device__ __forceinline__ void column_sums(A (&sums)[K], long long rows, long long column,
                                            long long n, F add) {
  static_assert((LANES & (LANES - 1)) == 0, "a tree of 2, 4, 8, ...");
  __shared__ A of[K][LANES][COLUMNS];
#pragma unroll
  for (int k = 0; k < K; ++k) sums[k] = 0;
  if (column < n)
#pragma unroll 4
    for (long long row = threadIdx.y; row < rows; row += LANES) add(sums, row, column);
#pragma unroll
  for (int k = 0; k < K; ++k) of[k][threadIdx.y][threadIdx.x] = sums[k];
  __syncthreads();
  for (int half = LANES / 2; half > 0; half /= 2) {
    if (threadIdx.y < half)
#pragma unroll
      for (int k = 0; k < K; ++k)
        of[k][threadIdx.y][threadIdx.x] += of[k][threadIdx.y + half][threadIdx.x];
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < K; ++k) sums[k] = of[k][0][threadIdx.x];
}

}  // namespace assay
