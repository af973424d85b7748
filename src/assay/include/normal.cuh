// The standard normal distribution, for GELU: Phi(x), the share of it below x.
#pragma once

#include "assay.cuh"

namespace assay {

__device__ __forceinline__ float complementary_error(float v) { return erfcf(v); }
__device__ __forceinline__ double complementary_error(double v) { return erfc(v); }

// Phi(x) = erfc(-x / sqrt(2)) / 2, accurate relative to itself in the tail below zero too.
//
// For results of 2 bytes: with z = |x| / sqrt(2) and t = 1 / (1 + 0.44 z), erfc(z) exp(z^2) is a
// polynomial in t to 5.4e-6 of itself for z up to 12 (fitted by us: weighted least squares, weights
// moved until the largest relative error was least), far below the rounding of half, 2^-12 to
// 2^-11. It takes two of the slow operations, exp2 and a reciprocal.
__device__ __forceinline__ float half_erfc_ratio(float z) {  // erfc(z) exp(z^2) / 2, for z >= 0
  const float t = 0.25f * reciprocal(0.11f * z + 0.25f);
  float p = -0.14626803f;
  p = p * t + 0.35114211f;
  p = p * t + 0.04017084f;
  p = p * t + 0.26388751f;
  p = p * t + 0.24249434f;
  p = p * t + 0.24856792f;
  return 0.5f * p * t;
}

template <typename T>
__device__ __forceinline__ accumulator<T> normal_below(accumulator<T> x) {
  using A = accumulator<T>;
  const A z = x * A(0.70710678118654752440);
  if constexpr (sizeof(T) == 2) {
    const float tail = half_erfc_ratio(fabsf(z)) * exponential_for<T>(-z * z);
    return x < 0 ? tail : 1 - tail;
  } else {
    return A(0.5) * complementary_error(-z);
  }
}

}  // namespace assay
