// y = x B^-beta with B = add + a sum x^2 over `size` neighbouring channels, and its gradient.
//
// lrn_naive       one thread an element of y, which reads its window, neighbours out of L1 and L2
// lrn_walked      one thread a pixel, which walks its channels with a window in registers: each x is
//                 read once, and fewer threads run
// lrn_grad_terms  one thread an element: dy x B^(-beta - 1) and B^-beta
// lrn_grad        one thread an element: puts the terms of its window together
//
// A window is summed anew for each channel, in one order: adding what enters and taking off what
// leaves would keep the rounding errors of every channel before.
//
// shapes  x, y, dx, dy: (batch, channels, plane); kept: (2, n)
// bytes   2 * n * sizeof(T); the gradient 3, and 4 of the accumulator's
// FLOPs   2 * size + 4 an element; the gradient 3 * size + 12
#include "assay.cuh"

__device__ __forceinline__ float power(float v, float p) { return powf(v, p); }
__device__ __forceinline__ double power(double v, double p) { return pow(v, p); }

// The channels first to last, both included, around that of element i.
struct Window {
  int first, last, channel;
  __device__ __forceinline__ Window(long long i, int channels, long long plane, int before,
                                    int after)
      : channel(int(i / plane % channels)) {
    first = channel < before ? 0 : channel - before;
    last = channels - 1 - channel < after ? channels - 1 : channel + after;
  }
  // Where channel c of the same pixel lies, if i is this one's element.
  __device__ __forceinline__ long long at(long long i, int c, long long plane) const {
    return i + (c - channel) * plane;
  }
};

template <typename T>
__device__ __forceinline__ assay::accumulator<T> base_of(const T* x, long long i, int channels,
                                                         long long plane, int size,
                                                         assay::accumulator<T> a,
                                                         assay::accumulator<T> add) {
  const Window own(i, channels, plane, size / 2, (size - 1) / 2);
  assay::accumulator<T> sum = 0;
  for (int c = own.first; c <= own.last; ++c) {
    const auto v = assay::to_float(x[own.at(i, c, plane)]);
    sum += v * v;
  }
  return add + a * sum;
}

template <typename T>
__global__ void lrn_naive(T* y, const T* x, long long n, int channels, long long plane, int size,
                          assay::accumulator<T> a, assay::accumulator<T> beta,
                          assay::accumulator<T> add) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const auto base = base_of(x, i, channels, plane, size, a, add);
  y[i] = assay::from_float<T>(assay::to_float(x[i]) * power(base, -beta));
}

template <typename T, int SIZE>
__global__ void lrn_walked(T* y, const T* x, long long pixels, int channels, long long plane,
                           assay::accumulator<T> a, assay::accumulator<T> beta,
                           assay::accumulator<T> add) {
  using A = assay::accumulator<T>;
  constexpr int BEFORE = SIZE / 2, AFTER = (SIZE - 1) / 2;
  const long long pixel = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (pixel >= pixels) return;
  const long long start = pixel / plane * channels * plane + pixel % plane;
  const auto value = [&](int c) {
    return c < channels ? assay::to_float(x[start + c * plane]) : A(0);
  };
  A held[SIZE];  // the window of the channel at hand, which is held[BEFORE]
#pragma unroll
  for (int j = 0; j < SIZE; ++j) held[j] = j < BEFORE + 1 ? A(0) : value(j - BEFORE - 1);
  for (int c = 0; c < channels; ++c) {
#pragma unroll
    for (int j = 0; j + 1 < SIZE; ++j) held[j] = held[j + 1];
    held[SIZE - 1] = value(c + AFTER);
    A sum = 0;
#pragma unroll
    for (int j = 0; j < SIZE; ++j) sum += held[j] * held[j];
    y[start + c * plane] = assay::from_float<T>(held[BEFORE] * power(add + a * sum, -beta));
  }
}

template <typename T>
__global__ void lrn_grad_terms(assay::accumulator<T>* kept, const T* dy, const T* x, long long n,
                               int channels, long long plane, int size, assay::accumulator<T> a,
                               assay::accumulator<T> beta, assay::accumulator<T> add) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const auto base = base_of(x, i, channels, plane, size, a, add);
  const auto scale = power(base, -beta);
  kept[i] = assay::to_float(dy[i]) * assay::to_float(x[i]) * (scale / base);
  kept[n + i] = scale;
}

template <typename T>
__global__ void lrn_grad(T* dx, const assay::accumulator<T>* kept, const T* dy, const T* x,
                         long long n, int channels, long long plane, int size,
                         assay::accumulator<T> a, assay::accumulator<T> beta) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const Window own(i, channels, plane, (size - 1) / 2, size / 2);
  assay::accumulator<T> others = 0;
  for (int c = own.first; c <= own.last; ++c) others += kept[own.at(i, c, plane)];
  dx[i] = assay::from_float<T>(assay::to_float(dy[i]) * kept[n + i] -
                               2 * a * beta * assay::to_float(x[i]) * others);
}
