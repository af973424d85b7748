// y = scale x where a key is visible to a query, else -inf: the mask is a device function.
//
// masked_scores_naive  one thread an element, which divides to find its query and key
// masked_scores_row    one warp a row: 16 bytes a thread at a time; what is masked is not even read
//
// shapes  x, y: (heads, queries, keys), contiguous, of one type
// bytes   2 * heads * queries * keys * sizeof(T); masked_scores_row reads only what is visible
// FLOPs   1 an element
#include "assay.cuh"

// Of the keys, those up to this one are visible to query i: the last query sees all.
__device__ __forceinline__ long long last_visible(long long i, long long queries, long long keys) {
  return i + keys - queries;
}

// A float scale would round twice in double.
template <typename T>
__device__ __forceinline__ T masked(T v, double scale, bool visible) {
  using A = assay::accumulator<T>;
  return assay::from_float<T>(visible ? assay::to_float(v) * A(scale) : A(-INFINITY));
}

template <typename T>
__global__ void masked_scores_naive(T* y, const T* x, double scale, long long n, long long queries,
                                    long long keys) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = masked(x[i], scale, i % keys <= last_visible(i / keys % queries, queries, keys));
}

template <typename T>
__global__ void __launch_bounds__(256)
    masked_scores_row(T* y, const T* x, double scale, long long rows, long long queries,
                      long long keys) {
  constexpr int N = assay::widest<T>;
  const long long row = static_cast<long long>(blockIdx.x) * 8 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  x += row * keys;
  y += row * keys;
  const long long last = last_visible(row % queries, queries, keys);
  if (keys % N == 0 && assay::aligned(x) && assay::aligned(y)) {
    for (long long j = lane * N; j < keys; j += 32 * N) {
      assay::Vec<T, N> v;
      if (j <= last) v = assay::load<N>(x + j);
#pragma unroll
      for (int c = 0; c < N; ++c)
        v[c] = j + c <= last ? masked(v[c], scale, true) : assay::from_float<T>(-INFINITY);
      assay::store(y + j, v);
    }
  } else {
    for (long long j = lane; j < keys; j += 32)
      y[j] = j <= last ? masked(x[j], scale, true) : assay::from_float<T>(-INFINITY);
  }
}
