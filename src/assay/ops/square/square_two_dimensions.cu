// y = x * x of a matrix by blocks of 16 x 16 threads, as in the notes: one thread an element.
//
// A warp has two rows of 16 threads, so that in float it touches two pieces of 64 bytes where that
// of square_naive touches one of 128, and at two edges blocks have threads without an element.
//
// shapes  x, y: (m, n), contiguous, of one type: float, double, __half, __nv_bfloat16, int, ...
// bytes   2 * m * n * sizeof(T): each element read once and written once
// FLOPs   m * n
#include "square.cu"  // `squared`

template <typename T>
__global__ void __launch_bounds__(256) square_two_dimensions(T* y, const T* x, int m, int n) {
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  if (row >= m || column >= n) return;
  const long long i = static_cast<long long>(row) * n + column;
  y[i] = squared(x[i]);
}
