// dx = 2 dy x, the gradient of x * x: a thread UNROLL vectors of 16 bytes of dy and of x, all on
// their way before the first is used (assay::map2 of include/elementwise.cuh).
//
// shapes  dx, dy, x: n elements, contiguous, of one floating type
// bytes   3 * n * sizeof(T)
// FLOPs   2 * n
#include "elementwise.cuh"

struct SquareGrad {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A dy, A x) {
    return 2 * (x * dy);
  }
};
