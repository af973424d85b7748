// y = f(x), element by element: eight activations for the kernels of include/elementwise.cuh.
//
// assay::map1_naive  one thread an element: it loads one, works it out and stores it, so that few
//                    bytes are on their way.
// assay::map1        vectorised: one thread UNROLL vectors of 16 bytes, all on their way before the
//                    first is used.
//
// Each f is written so that it is finite for every finite x, and NaN for NaN. Where results have 2
// bytes it is made of hardware's exp and division (`..._for<T>` of assay.cuh), because there a long
// chain of accurate ones, not memory, would set the time.
//
// shapes  y, x: n elements, contiguous, of one type: float, double, __half or __nv_bfloat16
// bytes   2 * n * sizeof(T)
// FLOPs   1 (relu) to 20 (gelu) an element
#include "elementwise.cuh"
#include "normal.cuh"

struct Gelu {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A x) {
    return x * assay::normal_below<T>(x);
  }
};

// 2 u = 2 sqrt(2 / pi) (x + 0.044715 x^3). x^3 may be inf, then sigmoid is 0 or 1.
//
// At 2 bytes an element arithmetic decides, so what can be folded is: -2 u log2(e) is x times a
// polynomial in x^2, and the quarters of sigmoid_for (reciprocals of all 1 + e are normal so) meet
// in 0.25 x: nine operations.
struct GeluTanh {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A x) {
    if constexpr (sizeof(T) == 2) {
      const float by = -0.10294324f * (x * x) - 2.30220820f;  // -2 sqrt(2 / pi) log2(e) of both
      const float e = assay::power_of_two(x * by);
      return (0.25f * x) * assay::reciprocal(0.25f * e + 0.25f);
    }
    const A twice = A(1.59576912160573071176) * (x + A(0.044715) * x * x * x);
    return x * assay::sigmoid_for<T>(twice);
  }
};

struct Relu {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A x) {
    return x < 0 ? A(0) : x;  // so written, a NaN stays
  }
};

struct Tanh {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A x) {
    if constexpr (sizeof(T) == 8)
      return tanh(x);
    else
      return tanhf(x);
  }
};

struct Sigmoid {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A x) {
    return assay::sigmoid_for<T>(x);
  }
};

struct Elu {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A x) {
    if (x > 0) return x;
    if constexpr (sizeof(T) == 8)
      return expm1(x);  // exp(x) - 1 would lose all digits near zero
    else
      return expm1f(x);
  }
};

struct Softplus {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A x) {
    if (x > 20) return x;
    if constexpr (sizeof(T) == 8)
      return log1p(exp(x));
    else
      return log1pf(assay::exponential_for<T>(x));
  }
};

struct Swish {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A x) {
    return x * assay::sigmoid_for<T>(x);
  }
};
