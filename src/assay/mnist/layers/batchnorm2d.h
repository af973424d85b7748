// Batchnorm with the statistics of the batch, forward and backward; a channel is one task.
//
//   h = (x - mean) rstd,   y = h w + b,   rstd = 1 / sqrt(var + 1e-5),   var biased
//   dx = rstd w (dy - mean(dy) - h mean(dy h)),   dw = sum dy h,   db = sum dy
//
// Means are over the batch and the plane of a channel. Planes are summed in the type of x, their
// sums in double.
#pragma once
#include <cmath>

#include "vectors.h"

namespace {

constexpr double EPSILON = 1e-5;

template <typename T>
struct Moments {
  T mean, rest;  // the mean is mean + rest: one number of type T would be off by its rounding
  double rstd;
  T centred(T v) const { return v - mean - rest; }
};

template <typename T, typename F>
double channel_sum(int64_t batch, int64_t channels, int64_t plane, int64_t c, F value) {
  double sum = 0;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t first = (b * channels + c) * plane;
    T part = 0;
#pragma omp simd reduction(+ : part)
    for (int64_t i = 0; i < plane; ++i) part += value(first + i);
    sum += part;
  }
  return sum;
}

template <typename T>
Moments<T> moments(const T* x, int64_t batch, int64_t channels, int64_t plane, int64_t c) {
  const double count = double(batch) * plane;
  const auto sum = [&](auto value) { return channel_sum<T>(batch, channels, plane, c, value); };
  Moments<T> m = {};
  m.mean = static_cast<T>(sum([&](int64_t i) { return x[i]; }) / count);
  m.rest = static_cast<T>(sum([&](int64_t i) { return x[i] - m.mean; }) / count);
  const double squares = sum([&](int64_t i) { return m.centred(x[i]) * m.centred(x[i]); });
  m.rstd = 1 / std::sqrt(squares / count + EPSILON);
  return m;
}

template <typename T>
void normalise(T* y, const T* x, const T* w, const T* b, int64_t batch, int64_t channels,
               int64_t plane) {
#pragma omp parallel for schedule(dynamic)
  for (int64_t c = 0; c < channels; ++c) {
    const Moments<T> m = moments(x, batch, channels, plane, c);
    const T scale = static_cast<T>(m.rstd * w[c]), shift = b[c];
    for (int64_t image = 0; image < batch; ++image) {
      const int64_t first = (image * channels + c) * plane;
#pragma omp simd
      for (int64_t i = 0; i < plane; ++i)
        y[first + i] = m.centred(x[first + i]) * scale + shift;
    }
  }
}

template <typename T>
void normalise_grad(T* dx, T* dw, T* db, const T* dy, const T* x, const T* w, int64_t batch,
                    int64_t channels, int64_t plane) {
  const double count = double(batch) * plane;
#pragma omp parallel for schedule(dynamic)
  for (int64_t c = 0; c < channels; ++c) {
    const Moments<T> m = moments(x, batch, channels, plane, c);
    const double sum = channel_sum<T>(batch, channels, plane, c, [&](int64_t i) { return dy[i]; });
    const double product = m.rstd * channel_sum<T>(batch, channels, plane, c, [&](int64_t i) {
                             return dy[i] * m.centred(x[i]);
                           });
    db[c] = static_cast<T>(sum);
    dw[c] = static_cast<T>(product);
    const T scale = static_cast<T>(m.rstd * w[c]), middle = static_cast<T>(sum / count);
    const T slope = static_cast<T>(product / count * m.rstd);
    for (int64_t image = 0; image < batch; ++image) {
      const int64_t first = (image * channels + c) * plane;
#pragma omp simd
      for (int64_t i = first; i < first + plane; ++i)
        dx[i] = scale * (dy[i] - middle - m.centred(x[i]) * slope);
    }
  }
}

}  // namespace
