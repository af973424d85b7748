// y = [a, b] along the last dimension.
//
// concat_naive       one thread an element, which divides to find its row
// concat_vectorised  a block copies a piece of a row, 16 bytes a thread at a time where the widths
//                    allow it
//
// shapes  a: (rows, p); b: (rows, q); y: (rows, p + q); contiguous, of one type
// bytes   2 * rows * (p + q) * sizeof(T)
// FLOPs   none
#include "assay.cuh"

template <typename T>
__global__ void concat_naive(T* y, const T* a, const T* b, long long n, long long p, long long q) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const long long row = i / (p + q), column = i % (p + q);
  y[i] = column < p ? a[row * p + column] : b[row * q + column - p];
}

template <typename T, int BLOCK, int UNROLL>
__global__ void __launch_bounds__(BLOCK)
    concat_vectorised(T* y, const T* a, const T* b, long long p, long long q, int pieces) {
  constexpr int N = assay::widest<T>;
  const long long row = blockIdx.x / pieces, width = p + q;
  const long long first = static_cast<long long>(blockIdx.x % pieces) * BLOCK * UNROLL * N;
  a += row * p;
  b += row * q;
  y += row * width;
  const bool vectors = p % N == 0 && q % N == 0 && assay::aligned(a) && assay::aligned(b) &&
                       assay::aligned(y);
  if (vectors) {
    assay::Vec<T, N> v[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const long long i = first + (u * BLOCK + threadIdx.x) * N;
      if (i < width) v[u] = assay::load<N>(i < p ? a + i : b + (i - p));
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const long long i = first + (u * BLOCK + threadIdx.x) * N;
      if (i < width) assay::store(y + i, v[u]);
    }
  } else {
    const long long end = first + BLOCK * UNROLL * N;
    for (long long i = first + threadIdx.x; i < end && i < width; i += BLOCK)
      y[i] = i < p ? a[i] : b[i - p];
  }
}
