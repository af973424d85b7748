// y = a + b, element by element: who does the work, from one thread to a grid of vectors.
//
// vecadd_strided     each thread takes every (all threads)-th element. With one thread it is the
//                    loop of a CPU; with one block, neighbours add neighbours; with a grid that
//                    covers the array, each thread has one element.
// vecadd_vectorised  a thread moves UNROLL vectors of 16 bytes of each array.
// vecadd_3d          a grid in three dimensions, one thread an element.
//
// shapes  y, a, b: n elements (d, h, w for vecadd_3d), contiguous, of one type
// bytes   3 * n * sizeof(T): two read and one written for each element
// FLOPs   n, a twelfth of a FLOP a byte in float
#include "elementwise.cuh"

__device__ __forceinline__ int added(int a, int b) { return int(unsigned(a) + unsigned(b)); }
template <typename T>
__device__ __forceinline__ T added(T a, T b) {
  return assay::from_float<T>(assay::to_float(a) + assay::to_float(b));
}

template <typename T>
__global__ void vecadd_strided(T* y, const T* a, const T* b, long long n) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += step)
    y[i] = added(a[i], b[i]);
}

template <typename T, int BLOCK, int UNROLL>
__global__ void __launch_bounds__(BLOCK)
    vecadd_vectorised(T* y, const T* a, const T* b, long long n) {
  const T* const in[2] = {a, b};
  assay::map<BLOCK, UNROLL>(y, in, n, [](T u, T v) { return added(u, v); });
}

template <typename T>
__global__ void vecadd_3d(T* y, const T* a, const T* b, int d, int h, int w) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int j = blockIdx.y * blockDim.y + threadIdx.y;
  const int k = blockIdx.z * blockDim.z + threadIdx.z;
  if (i >= w || j >= h || k >= d) return;
  const long long at = (static_cast<long long>(k) * h + j) * w + i;
  y[at] = added(a[at], b[at]);
}
