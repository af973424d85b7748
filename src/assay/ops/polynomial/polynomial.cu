// y = c[0] + c[1] x + c[2] x^2 + ... by Horner's rule, and its gradient dx = dy p'(x).
//
// polynomial_naive            one thread an element.
// polynomial_vectorised       one thread UNROLL vectors of 16 bytes.
// polynomial_grad_vectorised  the same with the slope instead of the value.
//
// The coefficients are the same for all threads: every load of one is a broadcast out of the L1
// cache, and the compiler hoists none, since their number is known only when the kernel runs.
//
// shapes  y, x, dx, dy: n elements; c: terms coefficients, from the constant one up; of one type
// bytes   2 * n * sizeof(T); the gradient 3 * n * sizeof(T)
// FLOPs   2 * n * (terms - 1), half a FLOP a byte in float for a parabola; the gradient
//         n * (3 * terms - 4)
#include "elementwise.cuh"

template <typename A, typename T>
__device__ __forceinline__ A value(A x, const T* c, int terms) {
  A y = assay::to_float(c[terms - 1]);
  for (int k = terms - 2; k >= 0; --k) y = y * x + assay::to_float(c[k]);
  return y;
}

template <typename A, typename T>
__device__ __forceinline__ A slope(A x, const T* c, int terms) {
  A y = A(terms - 1) * assay::to_float(c[terms - 1]);
  for (int k = terms - 2; k > 0; --k) y = y * x + A(k) * assay::to_float(c[k]);
  return y;
}

template <typename T>
__global__ void polynomial_naive(T* y, const T* x, const T* c, long long n, int terms) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = assay::from_float<T>(value(assay::to_float(x[i]), c, terms));
}

template <typename T, int BLOCK, int UNROLL>
__global__ void __launch_bounds__(BLOCK)
    polynomial_vectorised(T* y, const T* x, const T* c, long long n, int terms) {
  const T* const in[1] = {x};
  assay::map<BLOCK, UNROLL>(y, in, n, [=](T v) {
    return assay::from_float<T>(value(assay::to_float(v), c, terms));
  });
}

template <typename T, int BLOCK, int UNROLL>
__global__ void __launch_bounds__(BLOCK) polynomial_grad_vectorised(
    T* dx, const T* dy, const T* x, const T* c, long long n, int terms) {
  const T* const in[2] = {dy, x};
  assay::map<BLOCK, UNROLL>(dx, in, n, [=](T g, T v) {
    // A constant has no slope, whatever dy is.
    if (terms == 1) return assay::from_float<T>(0);
    return assay::from_float<T>(assay::to_float(g) * slope(assay::to_float(v), c, terms));
  });
}
