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

// exp(x) - 1 would lose all digits near zero. At 2 bytes it is so only where that costs 2^-18 of it at
// most; nearer by its series up to x^3 / 6, which leaves out x^3 / 24, 1e-5, of itself.
struct Elu {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A x) {
    if constexpr (sizeof(T) == 2) {
      const float near = x * (x * (x * 0.16666667f + 0.5f) + 1);
      const float below = x > -0.0625f ? near : assay::exponential_for<T>(x) - 1;
      return x > 0 ? x : below;
    } else if constexpr (sizeof(T) == 4) {
      return x > 0 ? x : expm1f(x);
    } else {
      return x > 0 ? x : expm1(x);
    }
  }
};

// log(1 + e), e = exp(x). At 2 bytes by hardware's logarithm, within 2^-17 of it for e above 1 / 32;
// below, where 1 + e would lose e's digits, by its series up to e^3 / 3, which leaves out e^3 / 4,
// 8e-6, of itself.
struct Softplus {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A x) {
    if constexpr (sizeof(T) == 2) {
      const float e = assay::exponential_for<T>(x);
      const float few = e * (e * (e * 0.33333333f - 0.5f) + 1);
      const float all = e < 0.03125f ? few : 0.69314718f * assay::log2_of(1 + e);
      return x > 20 ? x : all;
    } else if constexpr (sizeof(T) == 4) {
      return x > 20 ? x : log1pf(expf(x));
    } else {
      return x > 20 ? x : log1p(exp(x));
    }
  }
};

struct Swish {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A x) {
    return x * assay::sigmoid_for<T>(x);
  }
};
