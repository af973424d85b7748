// The standard normal distribution, for GELU: Phi(x), the share of it below x.
#pragma once

#include "assay.cuh"

namespace assay {

// Phi(x) = erfc(-x / sqrt(2)) / 2, accurate relative to itself in the tail below zero too.
//
// For results of 2 bytes: Phi(-v) exp(v^2 / 2), v >= 0. With t = 1 / (1 + 0.44 v / sqrt(2)) it is t
// times a polynomial in t to 5.4e-6 of itself for v up to 17 (fitted by us: weighted least squares,
// weights moved until the largest relative error was least), far below the rounding of half, 2^-12
// to 2^-11. It takes one of the slow operations, a reciprocal, and exp(v^2 / 2) another.
__device__ __forceinline__ float normal_ratio(float v) {
  const float t = reciprocal(0.31112698f * v + 1);
  float p = -0.073134015f;
  p = p * t + 0.175571055f;
  p = p * t + 0.02008542f;
  p = p * t + 0.131943755f;
  p = p * t + 0.12124717f;
  p = p * t + 0.12428396f;
  return p * t;
}

// Phi(-v) for v >= 0 in float, within 8e-7 of itself down to 2^-126, and 3e-7 for v up to 1. GELU
// takes some 0.6 of the instructions so that it takes by erfcf (sm_90). With t = 1 / (1 + 0.36 v /
// sqrt(2)) and s = 1 - t, Phi(-v) exp(v^2 / 2) / t is a polynomial in s to 6.3e-8 of itself for v
// up to 16 (fitted as above). s is not a difference, so that for small v the error of t is small in
// it. What rounding v^2 and its product with log2(e) / 2 loses goes into e to first order.
__device__ __forceinline__ float normal_tail(float v) {
  v = fminf(v, 16.0f);  // the result is 0 from there on, and v^2 could be inf
  const float kv = 0.25455844f * v;
  const float t = reciprocal(1 + kv), s = kv * t;
  float p = 0.027068360f;
  p = p * s - 0.068215333f;
  p = p * s - 0.016112866f;
  p = p * s + 0.17887786f;
  p = p * s + 0.011700175f;
  p = p * s - 0.68805903f;
  p = p * s + 1.2235205f;
  p = p * s - 1.0671886f;
  p = p * s + 0.49999997f;

  constexpr float HALF = -0.72134752f, BEYOND = -HALF - 0.72134752044448170;  // -log2(e) / 2
  const float square = v * v, lost = fmaf(v, v, -square), power = HALF * square;
  const float rest = fmaf(BEYOND, square, fmaf(HALF, lost, fmaf(HALF, square, -power)));
  const float e = power_of_two(power);
  return p * t * fmaf(e, rest * 0.69314718f, e);
}

template <typename T>
__device__ __forceinline__ accumulator<T> normal_below(accumulator<T> x) {
  if constexpr (sizeof(T) == 8) {
    return 0.5 * erfc(-0.70710678118654752440 * x);
  } else {
    const float v = fabsf(x);
    const float tail = sizeof(T) == 4 ? normal_tail(v)
                                      : normal_ratio(v) * power_of_two(-0.72134752f * x * x);
    return x < 0 ? tail : 1 - tail;
  }
}

}  // namespace assay
