// y = w x + b and y = sigmoid(a + b c), element by element: a chain of calls in one kernel.
//
// The idea: what one call would write for the next to read stays in a register. include/
// elementwise.cuh has the kernels, `naive` (one thread an element) and vectorised (16 bytes a
// thread at a time); here is what they compute.
//
// shapes  y and the three inputs: n elements, contiguous, of one type
// bytes   4 * n * sizeof(T)
// FLOPs   2 * n, and 6 * n counting exp as one
#include "elementwise.cuh"

struct ScaleBias {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A w, A x, A b) {
    return w * x + b;
  }
};

struct SigmoidScaleBias {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A a, A b, A c) {
    return assay::sigmoid_for<T>(a + b * c);
  }
};
