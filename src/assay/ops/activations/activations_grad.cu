// dx = dy f'(x), element by element: the slopes of eight activations, from x or from y = f(x).
//
// assay::map2  vectorised (see include/elementwise.cuh): a thread UNROLL vectors of 16 bytes of dy
//              and of what was saved, all on their way before the first is used. What one thread an
//              element costs beside it, activations.cu shows.
//
// A slope that y alone tells is worked out of y, so that x need not be kept.
//
// shapes  dx, dy and what was saved (x, or y for relu, tanh and sigmoid): n elements, of one type
// bytes   3 * n * sizeof(T)
// FLOPs   1 (relu) to 26 (gelu) an element
#include "elementwise.cuh"
#include "normal.cuh"

// Phi(x) + x phi(x), phi the density exp(-x^2 / 2) / sqrt(2 pi). The two cancel near x = -0.752,
// where half, with its 11 bits, would show the error of a short cut; bfloat16 does not.
template <typename T>
inline constexpr bool SHORT_CUT = false;
template <>
inline constexpr bool SHORT_CUT<__nv_bfloat16> = true;

struct GeluGrad {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A dy, A x) {
    constexpr A root = 0.39894228040143267794;  // 1 / sqrt(2 pi)
    if constexpr (SHORT_CUT<T>) {
      // Both hold exp(-x^2 / 2). 2^16 times it is still a normal number where it is not.
      const float raised = assay::exponential_for<T>(-0.5f * x * x + 11.09035489f);
      const float ratio = assay::normal_ratio(fabsf(x));
      const float part = raised * (root * fabsf(x) - ratio) * 0x1p-16f;
      return dy * (x < 0 ? -part : 1 + part);
    } else {
      return dy * (assay::normal_below<A>(x) + x * (root * assay::exponential(A(-0.5) * x * x)));
    }
  }
};

// s + x s (1 - s) 2 u', s = sigmoid(2 u). Beyond 64 the slope is 0 or 1; without the bound x^2
// would make it 0 * inf for x near the largest number.
struct GeluTanhGrad {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A dy, A x) {
    constexpr A twice = 1.59576912160573071176, a = 0.044715;
    const A s = assay::sigmoid_for<T>(twice * (x + a * x * x * x));
    const A v = x > 64 ? A(64) : x < -64 ? A(-64) : x;
    return dy * (s + v * s * (1 - s) * twice * (1 + 3 * a * v * v));
  }
};

struct ReluGrad {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A dy, A y) {
    return y <= 0 ? A(0) : dy;
  }
};

struct TanhGrad {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A dy, A y) {
    return dy * (1 - y * y);
  }
};

struct SigmoidGrad {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A dy, A y) {
    return dy * y * (1 - y);
  }
};

struct EluGrad {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A dy, A x) {
    return x > 0 ? dy : dy * assay::exponential_for<T>(x);
  }
};

struct SoftplusGrad {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A dy, A x) {
    return x > 20 ? dy : dy * assay::sigmoid_for<T>(x);
  }
};

struct SwishGrad {
  template <typename T, typename A>
  static __device__ __forceinline__ A of(A dy, A x) {
    const A s = assay::sigmoid_for<T>(x);
    return dy * (s * (1 + x * (1 - s)));
  }
};
