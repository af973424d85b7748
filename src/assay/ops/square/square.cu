// y = x * x, element by element: the simplest kernel that is worth timing.
//
// square_naive       one thread an element: neighbouring threads touch neighbouring addresses, so a
//                    warp's 32 accesses become one or a few wide ones.
// square_vectorised  one thread 16 bytes: a quarter (float) or an eighth (half) of the loads and
//                    stores, so that issuing them is never what the memory waits for.
//
// shapes  x, y: n elements, contiguous, of one type: float, double, __half, __nv_bfloat16, int, ...
// bytes   2 * n * sizeof(T): each element read once and written once
// FLOPs   n, an eighth of a FLOP a byte in float: memory decides, by far
#include "assay.cuh"

// Floating point: multiplied in the accumulator, where a product of two halves is exact, and
// rounded once. Integers wrap around as in torch: in unsigned arithmetic, where that is defined.
__device__ __forceinline__ int squared(int v) { return int(unsigned(v) * unsigned(v)); }
__device__ __forceinline__ long long squared(long long v) {
  return static_cast<long long>(static_cast<unsigned long long>(v) * v);
}
template <typename T>
__device__ __forceinline__ T squared(T v) {
  const auto wide = assay::to_float(v);
  return assay::from_float<T>(wide * wide);
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK) square_naive(T* y, const T* x, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x;
  if (i < n) y[i] = squared(x[i]);
}

// A block owns a tile of BLOCK vectors.
template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK) square_vectorised(T* y, const T* x, long long n) {
  constexpr int N = assay::widest<T>;
  constexpr int TILE = BLOCK * N;
  const long long first = static_cast<long long>(blockIdx.x) * TILE;

  // The last tile may be cut short, and a view may start anywhere: 16-byte accesses would then
  // leave the array or trap. The condition is the same for the whole block, so no warp diverges.
  if (first + TILE <= n && assay::aligned(x) && assay::aligned(y)) {
    const long long i = first + threadIdx.x * N;
    auto v = assay::load<N>(x + i);
#pragma unroll
    for (int j = 0; j < N; ++j) v[j] = squared(v[j]);
    assay::store(y + i, v);
  } else {
    for (long long i = first + threadIdx.x; i < first + TILE && i < n; i += BLOCK)
      y[i] = squared(x[i]);
  }
}
