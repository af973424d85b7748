// y = (x - mean) rstd w + b of each plane of one channel of one image, and its gradient.
//
// instancenorm2d       a block a plane: mean, then the squares about it, then y
// instancenorm2d_grad  the same, with sum dy and sum dy (x - mean); keeps the plane's part of dw, db
// instancenorm2d_sums  a thread a channel: adds these parts over the images, in order
//
// shapes  x, y, dx, dy: (batch, channels, plane); w, b, dw, db: channels; kept: (batch, channels, 2)
// bytes   2 * elements * sizeof(T) and what L2 has lost of a plane meanwhile; the gradient 3
// FLOPs   8 an element; the gradient 15
#include "norm.cuh"

template <typename T>
inline constexpr assay::accumulator<T> EPS = 1e-5;

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    instancenorm2d(T* y, const T* x, const T* w, const T* b, int channels, long long plane) {
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

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    instancenorm2d_grad(T* dx, assay::accumulator<T>* kept, const T* dy, const T* x, const T* w,
                        int channels, long long plane) {
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

template <typename T>
__global__ void instancenorm2d_sums(T* dw, T* db, const assay::accumulator<T>* kept, int batch,
                                    int channels) {
  using A = assay::accumulator<T>;
  const int channel = blockIdx.x * blockDim.x + threadIdx.x;
  if (channel >= channels) return;
  A of_gh = 0, of_g = 0;
  for (int image = 0; image < batch; ++image) {
    const A* const at = kept + 2 * (static_cast<long long>(image) * channels + channel);
    of_gh += at[0];
    of_g += at[1];
  }
  dw[channel] = assay::from_float<T>(of_gh);
  db[channel] = assay::from_float<T>(of_g);
}
