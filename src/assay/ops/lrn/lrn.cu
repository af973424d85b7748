// y = x B^-beta with B = add + a sum x^2 over `size` neighbouring channels, and its gradient.
//
// lrn_naive        one thread an element of y, which reads its window, neighbours out of L1 and L2
// lrn_walked       a thread walks a strip, 8 channels of up to 4 neighbouring pixels: it asks at
//                  once for all that their windows hold, and computes in registers
// lrn_grad_walked  the same of dy and of two windows of x: terms that neighbours share are computed
//                  by each
// lrn_grad_terms, lrn_grad
//                  wider windows, a thread an element: dy x B^(-beta - 1) and B^-beta; then sums of
//                  these terms
//
// A window is summed anew for each channel, in one order: adding what enters and taking off what
// leaves would keep the rounding errors of every channel before. Strips of the same pixels lie in
// one block, so that the channels between two of them come out of L1 or L2 the second time.
//
// shapes  x, y, dx, dy: (batch, channels, plane); kept: (2, n)
// bytes   2 * n * sizeof(T); the gradient 3, and of wider windows 4 of the accumulator's
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

// ---- powers ---------------------------------------------------------------------------------

// QUARTERS is 4 beta, or ANY. A root is one instruction of the hardware, within 2^-22.9 (inverse)
// or 2^-23 of itself, so that base^-0.75 is within 4 units in the last place, as powf is, which
// takes 60 instructions. NEAREST: a step of Newton's method makes roots in float as good as rounded
// to nearest, for a gradient, which may be a hundredth of what it is the difference of. Other
// powers for 2 bytes: the hardware's logarithm and exp2 are together within 2^-22 |log2 of the
// result|. None of these takes a subnormal base for 0.
inline constexpr int ANY = -1;

// What makes a root better; not of 0 and of inf, where it comes out as NaN.
__device__ __forceinline__ float corrected(float v, float by) { return by == by ? v + by : v; }

template <bool NEAREST>
__device__ __forceinline__ float inverse_root(float v) {
  const float made = rsqrtf(v);
  if constexpr (!NEAREST) return made;
  const float root = v * made, rest = fmaf(v, made, -root);  // together v * made
  const float off = fmaf(-rest, made, fmaf(-root, made, 1.0f));
  return corrected(made, 0.5f * made * off);
}
template <bool NEAREST>
__device__ __forceinline__ double inverse_root(double v) {
  return rsqrt(v);
}

template <bool NEAREST>
__device__ __forceinline__ float root(float v) {  // of an inverse root: never subnormal
  float made;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(made) : "f"(v));
  if constexpr (!NEAREST) return made;
  return corrected(made, 0.5f * rsqrtf(v) * fmaf(-made, made, v));
}
template <bool NEAREST>
__device__ __forceinline__ double root(double v) {
  return sqrt(v);
}

template <typename A>
struct Powers {
  A scale, next;  // base^-beta, base^(-beta - 1)
};

template <typename T, int QUARTERS, bool NEAREST>
__device__ __forceinline__ Powers<assay::accumulator<T>> powers(assay::accumulator<T> base,
                                                                assay::accumulator<T> beta) {
  using A = assay::accumulator<T>;
  if constexpr (QUARTERS != ANY) {
    const A half = inverse_root<NEAREST>(base), one = half * half;
    const A quarter = QUARTERS % 2 ? root<NEAREST>(half) : A(1);
    const A halves = QUARTERS / 2 == 0 ? A(1) : QUARTERS / 2 == 1 ? half : one;
    return {halves * quarter, halves * quarter * one};
  } else if constexpr (sizeof(T) == 2) {
    const A scale = exp2f(-beta * __log2f(base));
    return {scale, __fdividef(scale, base)};
  } else {
    const A scale = power(base, -beta);
    return {scale, scale / base};
  }
}

// ---- strips ---------------------------------------------------------------------------------

inline constexpr int CHANNELS = 8;  // of a strip

// N neighbouring pixels as they lie in memory: of 2 bytes two in a word.
template <typename T, bool PAIRS>
struct WordOf {
  using type = T;
};
template <typename T>
struct WordOf<T, true> {
  using type = unsigned;
};
template <typename T, int N>
inline constexpr bool in_pairs = assay::paired<T> && N % 2 == 0;
template <typename T, int N>
using Pixels = assay::Vec<typename WordOf<T, in_pairs<T, N>>::type, in_pairs<T, N> ? N / 2 : N>;

template <typename T, int N>
__device__ __forceinline__ assay::Wide<T, N> widened(const Pixels<T, N>& pixels) {
  assay::Wide<T, N> wide;
  if constexpr (in_pairs<T, N>) {
#pragma unroll
    for (int w = 0; w < N / 2; ++w) {
      const float2 pair = assay::pair_of(pixels[w], T());
      wide[2 * w] = pair.x;
      wide[2 * w + 1] = pair.y;
    }
  } else {
#pragma unroll
    for (int j = 0; j < N; ++j) wide[j] = assay::to_float(pixels[j]);
  }
  return wide;
}

// A thread's strip. A block has blockDim.x vectors of `pixels` pixels of an image, and blockDim.y
// strips of each; `tiles` blocks cover a plane, and `groups` the channels.
struct Strip {
  int channel;  // the first
  long long pixel, at;  // of the plane; of its element in x
  __device__ __forceinline__ Strip(int pixels, int channels, long long plane, unsigned tiles,
                                   unsigned groups) {
    const unsigned tile = blockIdx.x / groups, image = tile / tiles;
    channel = ((blockIdx.x - tile * groups) * blockDim.y + threadIdx.y) * CHANNELS;
    pixel = (static_cast<long long>(tile - image * tiles) * blockDim.x + threadIdx.x) * pixels;
    at = (static_cast<long long>(image) * channels + channel) * plane + pixel;
  }
};

// COUNT channels from `first` on; `from` points to these pixels of that channel. What lies beyond
// the channels counts as 0.
template <typename T, int N, int COUNT>
__device__ __forceinline__ void fetch(Pixels<T, N> (&pixels)[COUNT], const T* from, int first,
                                      int channels, long long plane) {
  using Word = typename WordOf<T, in_pairs<T, N>>::type;
#pragma unroll
  for (int c = 0; c < COUNT; ++c) {
    pixels[c] = {};
    if (static_cast<unsigned>(first + c) < static_cast<unsigned>(channels))
      pixels[c] = assay::load<in_pairs<T, N> ? N / 2 : N>(
          reinterpret_cast<const Word*>(from + c * plane));
  }
}

// B of the channel whose window begins at `from`.
template <int SIZE, typename T, int N, typename A>
__device__ __forceinline__ assay::Wide<T, N> bases(const Pixels<T, N>* from, A a, A add) {
  assay::Wide<T, N> base = {};
#pragma unroll
  for (int c = 0; c < SIZE; ++c) {
    const auto v = widened<T, N>(from[c]);
#pragma unroll
    for (int j = 0; j < N; ++j) base[j] += v[j] * v[j];
  }
#pragma unroll
  for (int j = 0; j < N; ++j) base[j] = add + a * base[j];
  return base;
}

template <int SIZE, int QUARTERS, int N, typename T, typename A>
__device__ __forceinline__ void walk_strip(T* y, const T* x, int channel, int channels,
                                           long long plane, A a, A beta, A add) {
  constexpr int BEFORE = SIZE / 2;
  Pixels<T, N> held[CHANNELS + SIZE - 1];
  fetch<T, N>(held, x - BEFORE * plane, channel - BEFORE, channels, plane);
#pragma unroll
  for (int c = 0; c < CHANNELS; ++c) {
    const auto base = bases<SIZE, T, N>(held + c, a, add);
    auto v = widened<T, N>(held[c + BEFORE]);
#pragma unroll
    for (int j = 0; j < N; ++j) v[j] *= powers<T, QUARTERS, false>(base[j], beta).scale;
    if (channel + c < channels) assay::store(y + c * plane, v);
  }
}

template <typename T, int SIZE, int N, int QUARTERS>
__global__ void __launch_bounds__(256)
    lrn_walked(T* y, const T* x, int channels, long long plane, unsigned tiles, unsigned groups,
               assay::accumulator<T> a, assay::accumulator<T> beta, assay::accumulator<T> add) {
  constexpr int BYTES = N * sizeof(T);
  const bool vectors = assay::aligned<BYTES>(x) && assay::aligned<BYTES>(y);
  const Strip own(N, channels, plane, tiles, groups);
  if (own.pixel >= plane || own.channel >= channels) return;
  x += own.at;
  y += own.at;
  if (N == 1 || vectors) {
    walk_strip<SIZE, QUARTERS, N>(y, x, own.channel, channels, plane, a, beta, add);
  } else {  // a view that begins between two vectors
#pragma unroll 1
    for (int j = 0; j < N; ++j)
      walk_strip<SIZE, QUARTERS, 1>(y + j, x + j, own.channel, channels, plane, a, beta, add);
  }
}

// Of channel j: dy B^-beta of its own, and x of its own times the terms dy x B^(-beta - 1) of the
// channels whose windows hold it.
template <int SIZE, int QUARTERS, int N, typename T, typename A>
__device__ __forceinline__ void walk_strip_back(T* dx, const T* dy, const T* x, int channel,
                                                int channels, long long plane, A a, A beta,
                                                A add) {
  constexpr int BEFORE = SIZE / 2, AFTER = (SIZE - 1) / 2;
  constexpr int TERMS = CHANNELS + SIZE - 1;
  Pixels<T, N> held[TERMS + SIZE - 1], given[TERMS];
  fetch<T, N>(held, x - (SIZE - 1) * plane, channel - (SIZE - 1), channels, plane);
  fetch<T, N>(given, dy - AFTER * plane, channel - AFTER, channels, plane);
  assay::Wide<T, N> term[TERMS], own[CHANNELS];
#pragma unroll
  for (int c = 0; c < TERMS; ++c) {
    const int of = channel - AFTER + c;
    const bool there = static_cast<unsigned>(of) < static_cast<unsigned>(channels);
    const auto base = bases<SIZE, T, N>(held + c, a, add);
    const auto v = widened<T, N>(held[c + BEFORE]), g = widened<T, N>(given[c]);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const auto p = powers<T, QUARTERS, sizeof(T) == 4>(base[j], beta);
      // Beyond the channels dy and x are 0, but what they would be multiplied by may be NaN.
      term[c][j] = there ? g[j] * v[j] * p.next : A(0);
      if (c >= AFTER && c < AFTER + CHANNELS) own[c - AFTER][j] = g[j] * p.scale;
    }
  }
#pragma unroll
  for (int c = 0; c < CHANNELS; ++c) {
    const auto v = widened<T, N>(held[c + SIZE - 1]);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      A others = 0;
#pragma unroll
      for (int k = 0; k < SIZE; ++k) others += term[c + k][j];
      own[c][j] -= 2 * a * beta * v[j] * others;
    }
    if (channel + c < channels) assay::store(dx + c * plane, own[c]);
  }
}

template <typename T, int SIZE, int N, int QUARTERS>
__global__ void __launch_bounds__(256)
    lrn_grad_walked(T* dx, const T* dy, const T* x, int channels, long long plane, unsigned tiles,
                    unsigned groups, assay::accumulator<T> a, assay::accumulator<T> beta,
                    assay::accumulator<T> add) {
  constexpr int BYTES = N * sizeof(T);
  const bool vectors = assay::aligned<BYTES>(x) && assay::aligned<BYTES>(dy) &&
                       assay::aligned<BYTES>(dx);
  const Strip own(N, channels, plane, tiles, groups);
  if (own.pixel >= plane || own.channel >= channels) return;
  x += own.at;
  dy += own.at;
  dx += own.at;
  if (N == 1 || vectors) {
    walk_strip_back<SIZE, QUARTERS, N>(dx, dy, x, own.channel, channels, plane, a, beta, add);
  } else {
#pragma unroll 1
    for (int j = 0; j < N; ++j)
      walk_strip_back<SIZE, QUARTERS, 1>(dx + j, dy + j, x + j, own.channel, channels, plane, a,
                                         beta, add);
  }
}

// ---- the gradient of wider windows ----------------------------------------------------------

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
