// y = (x - mean) rstd w + b of each plane of one channel of one image, and its gradient.
//
// instancenorm2d_held       a plane in the registers of a warp or a block, read once
// instancenorm2d_grad_held  the same of x and dy, with sum dy and sum dy (x - mean): dx, and the
//                           plane's part of dw and db
// instancenorm2d_walked, instancenorm2d_grad_walked
//                           longer planes, a block each: walked three times
// instancenorm2d_sums       a warp a channel: adds these parts over the images, in a fixed order
//
// shapes  x, y, dx, dy: (batch, channels, plane); w, b, dw, db: channels;
//         kept: (batch, channels, 2)
// bytes   2 * elements * sizeof(T), the gradient 3; walked also what L2 has lost of a plane
// FLOPs   8 an element; the gradient 15
#include "norm_grad.cuh"

template <typename T>
inline constexpr assay::accumulator<T> EPS = 1e-5;

// The channel's weights are asked for before the first sum.
template <int THREADS, int VECS, typename T>
__device__ __forceinline__ void normalise_plane(T* y, const T* x, const T* w, const T* b, int n,
                                                bool whole) {
  assay::Held<T, THREADS, VECS> v;
  v.load(x, n, whole, assay::from_float<T>(0));
  const auto weight = assay::to_float(*w), shift = assay::to_float(*b);
  const auto s = assay::statistics<true>(v, n, whole, EPS<T>);
  const auto scale = s.rstd * weight;
  v.change([=](auto value, int, int) { return (value - s.mean) * scale + shift; });
  v.store(y, n, whole);
}

template <typename T, int THREADS, int VECS, assay::Row ROW>
__global__ void
    __launch_bounds__(assay::threads_of_block<THREADS>, assay::blocks_of_held<T, THREADS, VECS>)
    instancenorm2d_held(T* y, const T* x, const T* w, const T* b, unsigned planes,
                        unsigned channels, int n) {
  const bool vectors = assay::aligned(x) && assay::aligned(y);
  assay::for_held_row<T, THREADS, VECS, ROW>(planes, n, vectors, [=](auto own, auto whole, int n) {
    const unsigned channel = unsigned(own) % channels;
    normalise_plane<THREADS, VECS>(y + own * n, x + own * n, w + channel, b + channel, n, whole);
  });
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    instancenorm2d_walked(T* y, const T* x, const T* w, const T* b, int channels,
                          long long plane) {
  using A = assay::accumulator<T>;
  const int channel = blockIdx.x % channels;
  x += blockIdx.x * plane;
  y += blockIdx.x * plane;
  const auto s = assay::statistics<true, BLOCK>(x, plane, EPS<T>);
  const A scale = s.rstd * assay::to_float(w[channel]), shift = assay::to_float(b[channel]);
  const T* const in[1] = {x};
  assay::walk<BLOCK>(in, y, plane, [&](auto& v, long long i, auto count) {
#pragma unroll
    for (int j = 0; j < count.value; ++j)
      v[0][j] = (v[0][j] - s.mean) * scale + shift;
    assay::store(y + i, v[0]);
  });
}

// Two waits for sums over the plane: of x and dy, then of the squares and of dy (x - mean).
template <int THREADS, int VECS, typename T, typename A>
__device__ __forceinline__ void differentiate_plane(T* dx, A* kept, const T* dy, const T* x,
                                                    const T* w, int n, bool whole) {
  __shared__ A of_x[2][THREADS / 32], of_products[2][THREADS / 32];
  assay::Held<T, THREADS, VECS> v, g;
  v.load(x, n, whole, assay::from_float<T>(0));
  g.load(dy, n, whole, assay::from_float<T>(0));
  const A weight = assay::to_float(*w);

  A sums[2] = {v.over(assay::Sum{}), g.over(assay::Sum{})};
  assay::row_sums<THREADS>(sums, of_x);
  const A mean = assay::share_of(sums[0], n), mean_g = assay::share_of(sums[1], n);
  v.change([&](A value, int u, int j) {  // x - mean; beyond the plane 0
    return value - (v.index(whole, u, whole ? 0 : j) < n ? mean : A(0));
  });
  A products[2] = {v.over([](A d, int, int) { return d * d; }, assay::Sum{}),
                   g.over([&](A value, int u, int j) { return value * v.v[u][j]; }, assay::Sum{})};
  assay::row_sums<THREADS>(products, of_products);
  const A rstd = assay::reciprocal_root(assay::share_of(products[0], n) + EPS<T>);
  const A of_gh = products[1] * rstd, slope = assay::share_of(of_gh, n) * rstd;

  g.change([&](A value, int u, int j) {
    return rstd * weight * (value - mean_g - v.v[u][j] * slope);
  });
  g.store(dx, n, whole);
  if (assay::own_lane<THREADS>() != 0) return;
  kept[0] = of_gh;
  kept[1] = sums[1];
}

template <typename T, int THREADS, int VECS, assay::Row ROW>
__global__ void __launch_bounds__(assay::threads_of_block<THREADS>)
    instancenorm2d_grad_held(T* dx, assay::accumulator<T>* kept, const T* dy, const T* x,
                             const T* w, unsigned planes, unsigned channels, int n) {
  const bool vectors = assay::aligned(x) && assay::aligned(dy) && assay::aligned(dx);
  assay::for_held_row<T, THREADS, VECS, ROW>(planes, n, vectors, [=](auto own, auto whole, int n) {
    const long long at = own * n;
    const T* const weight = w + unsigned(own) % channels;
    differentiate_plane<THREADS, VECS>(dx + at, kept + 2 * own, dy + at, x + at, weight, n, whole);
  });
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    instancenorm2d_grad_walked(T* dx, assay::accumulator<T>* kept, const T* dy, const T* x,
                               const T* w, int channels, long long plane) {
  using A = assay::accumulator<T>;
  const int channel = blockIdx.x % channels;
  x += blockIdx.x * plane;
  dy += blockIdx.x * plane;
  dx += blockIdx.x * plane;
  const auto s = assay::statistics<true, BLOCK>(x, plane, EPS<T>);
  A of_g = 0, of_gd = 0;
  const T* const in[2] = {dy, x};
  assay::walk<BLOCK>(in, static_cast<const T*>(nullptr), plane,
                     [&](auto& v, long long, auto count) {
#pragma unroll
                       for (int j = 0; j < count.value; ++j) {
                         const A g = v[0][j];
                         of_g += g;
                         of_gd += g * (v[1][j] - s.mean);
                       }
                     });
  of_g = assay::block_reduce<BLOCK>(of_g, assay::Sum{});
  of_gd = assay::block_reduce<BLOCK>(of_gd, assay::Sum{});
  const A of_gh = of_gd * s.rstd;
  if (threadIdx.x == 0) {
    kept[2 * static_cast<long long>(blockIdx.x)] = of_gh;
    kept[2 * static_cast<long long>(blockIdx.x) + 1] = of_g;
  }
  const A scale = s.rstd * assay::to_float(w[channel]);
  const A mean_g = of_g / A(plane), mean_gh = of_gh / A(plane);
  assay::walk<BLOCK>(in, dx, plane, [&](auto& v, long long i, auto count) {
#pragma unroll
    for (int j = 0; j < count.value; ++j) {
      const A h = (v[1][j] - s.mean) * s.rstd;
      v[0][j] = scale * (v[0][j] - mean_g - h * mean_gh);
    }
    assay::store(dx + i, v[0]);
  });
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    instancenorm2d_sums(T* dw, T* db, const assay::accumulator<T>* kept, int batch, int channels) {
  using A = assay::accumulator<T>;
  assay::await_previous_kernel();
  const int channel = blockIdx.x * (BLOCK / 32) + threadIdx.x / 32;
  if (channel >= channels) return;
  A of_gh = 0, of_g = 0;
  for (int image = threadIdx.x % 32; image < batch; image += 32) {
    const A* const at = kept + 2 * (static_cast<long long>(image) * channels + channel);
    of_gh += at[0];
    of_g += at[1];
  }
  of_gh = assay::warp_reduce(of_gh, assay::Sum{});
  of_g = assay::warp_reduce(of_g, assay::Sum{});
  if (threadIdx.x % 32 != 0) return;
  dw[channel] = assay::from_float<T>(of_gh);
  db[channel] = assay::from_float<T>(of_g);
}
