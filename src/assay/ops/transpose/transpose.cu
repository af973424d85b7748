// y[j, i] = x[i, j]: a ladder from scattered writes to 16 bytes at a time on both sides.
//
// transpose_naive       reads along rows, writes along columns: each write is a sector of its own
// transpose_tiled       through a 32 x 32 tile in shared memory: both sides along rows; but a
//                       column of the tile lies in one bank, so that a warp's read takes 32 turns
// transpose_padded      the tile's rows are one element longer: a column lies in 32 banks
// transpose_vectorised  a thread turns a square of N x N elements in registers (N to a vector), and
//                       whole vectors go through shared memory
//
// shapes  x: (m, n); y: (n, m); contiguous, of one type of 1 to 8 bytes
// bytes   2 * m * n * sizeof(T)
// FLOPs   none
#include "assay.cuh"

// Where a block's tile of x begins. Tiles are numbered along rows of x.
template <int TILE>
struct Corner {
  long long i, j;
  __device__ __forceinline__ explicit Corner(long long n) {
    const unsigned across = unsigned((n + TILE - 1) / TILE);
    i = static_cast<long long>(blockIdx.x / across) * TILE;
    j = static_cast<long long>(blockIdx.x % across) * TILE;
  }
  // Numbered down columns of x instead: blocks that run together then write along rows of y, and
  // scattered reads cost memory less than scattered writes do.
  __device__ __forceinline__ Corner(long long m, long long n) {
    const unsigned down = unsigned((m + TILE - 1) / TILE);
    i = static_cast<long long>(blockIdx.x % down) * TILE;
    j = static_cast<long long>(blockIdx.x / down) * TILE;
  }
};

constexpr int SIDE = 32, ROWS = 8;  // a block of 32 x 8 threads takes its tile in four steps

template <typename T>
__global__ void __launch_bounds__(SIDE* ROWS)
    transpose_naive(T* y, const T* x, long long m, long long n) {
  const Corner<SIDE> at(n);
  const long long j = at.j + threadIdx.x;
  for (int r = threadIdx.y; r < SIDE; r += ROWS) {
    const long long i = at.i + r;
    if (i < m && j < n) y[j * m + i] = x[i * n + j];
  }
}

template <int PITCH, typename T>
__device__ __forceinline__ void through_tile(T* y, const T* x, long long m, long long n) {
  __shared__ T tile[SIDE][PITCH];
  const Corner<SIDE> at(n);
  for (int r = threadIdx.y; r < SIDE; r += ROWS) {
    const long long i = at.i + r, j = at.j + threadIdx.x;
    if (i < m && j < n) tile[r][threadIdx.x] = x[i * n + j];
  }
  __syncthreads();
  for (int r = threadIdx.y; r < SIDE; r += ROWS) {
    const long long j = at.j + r, i = at.i + threadIdx.x;
    if (i < m && j < n) y[j * m + i] = tile[threadIdx.x][r];
  }
}

template <typename T>
__global__ void __launch_bounds__(SIDE* ROWS)
    transpose_tiled(T* y, const T* x, long long m, long long n) {
  through_tile<SIDE>(y, x, m, n);
}
template <typename T>
__global__ void __launch_bounds__(SIDE* ROWS)
    transpose_padded(T* y, const T* x, long long m, long long n) {
  through_tile<SIDE + 1>(y, x, m, n);
}

// ACROSS x ACROSS squares of a tile, one a thread. Three blocks of 256 threads and 128 bytes each keep
// 96 KB on their way: two, which is what fits where the compiler may take more registers, would
// keep 64. Smaller blocks are as many threads.
template <typename T, int ACROSS>
__global__ void __launch_bounds__(ACROSS* ACROSS, 768 / (ACROSS * ACROSS))
    transpose_vectorised(T* y, const T* x, long long m, long long n) {
  constexpr int N = assay::widest<T> < 8 ? assay::widest<T> : 8, TILE = ACROSS * N;
  using V = assay::Vec<T, N>;
  // A row of `turned` is a row of y's tile, of ACROSS vectors. Vector p of row c lies at p ^ (c / N %
  // 8): eight lanes that store to rows N apart, and eight that read one row, meet all 32 banks.
  __shared__ V turned[TILE][ACROSS];
  const auto slot = [](int c, int p) { return p ^ (c / N % 8); };

  const Corner<TILE> at(m, n);
  const int right = threadIdx.x % ACROSS, down = threadIdx.x / ACROSS;
  const long long i = at.i + down * N, j = at.j + right * N;
  const long long to = at.i + right * N;  // along a row of y
  const bool read_vectors = n % N == 0 && assay::aligned<sizeof(V)>(x);
  const bool write_vectors = m % N == 0 && assay::aligned<sizeof(V)>(y);
  const bool inside = at.i + TILE <= m && at.j + TILE <= n;
  assay::apart(read_vectors && write_vectors && inside, [&](auto all) {
    V row[N];
    const T* const from = x + i * n + j;
#pragma unroll
    for (int r = 0; r < N; ++r) {
      if (all || (read_vectors && inside)) {
        row[r] = assay::load<N>(from + r * n);
      } else {
#pragma unroll
        for (int c = 0; c < N; ++c)
          if (i + r < m && j + c < n) row[r][c] = from[r * n + c];
      }
    }
#pragma unroll
    for (int c = 0; c < N; ++c) {
      V column;
#pragma unroll
      for (int r = 0; r < N; ++r) column[r] = row[r][c];
      turned[right * N + c][slot(right * N + c, down)] = column;
    }
    __syncthreads();

#pragma unroll
    for (int step = 0; step < N; ++step) {
      const int c = step * ACROSS + down;
      if (!all && at.j + c >= n) continue;
      const V v = turned[c][slot(c, right)];
      T* const line = y + (at.j + c) * m + to;
      if (all || write_vectors) {
        if (all || to < m) assay::store(line, v);
      } else {
#pragma unroll
        for (int r = 0; r < N; ++r)
          if (to + r < m) line[r] = v[r];
      }
    }
  });
}
