// y = (x - mean) rstd w + b of each channel, with the statistics of the batch, and its gradient.
//
// batchnorm2d_parts, _grad_parts  `parts` blocks a channel, each every parts-th image: count, mean
//                                 and squares about it; the gradient also sums dy and dy (x - mean)
// batchnorm2d_write, _grad_write  the same blocks put the parts together and write their images
//
// Within a block the squares are taken about the mean of 32 values of its first image, and then moved
// to its own mean: sum (x - k)^2 - n (mean - k)^2 cancels little, for k is near the mean.
//
// shapes  x, y, dx, dy: (batch, channels, plane); w, b, dw, db: channels; kept: (channels, parts, 3
//         or 5)
// bytes   3 * elements * sizeof(T); the gradient 5 * elements * sizeof(T)
// FLOPs   8 an element; the gradient 15
#include "norm.cuh"

template <typename T>
inline constexpr assay::accumulator<T> EPS = 1e-5;

// A block's channel and its first image.
struct Own {
  int channel, part;
  __device__ __forceinline__ explicit Own(int parts)
      : channel(blockIdx.x / parts), part(blockIdx.x % parts) {}
};

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    batchnorm2d_parts(assay::accumulator<T>* kept, const T* x, int batch, int channels,
                      long long plane, int parts) {
  using A = assay::accumulator<T>;
  const Own own(parts);
  const A about = assay::near_mean(
      x + (static_cast<long long>(own.part) * channels + own.channel) * plane, plane);
  A sum = 0, squares = 0;
  for (int image = own.part; image < batch; image += parts) {
    const long long at = (static_cast<long long>(image) * channels + own.channel) * plane;
    const T* const in[1] = {x + at};
    assay::walk<BLOCK>(in, static_cast<const T*>(nullptr), plane,
                       [&](auto& v, long long, auto count) {
#pragma unroll
                         for (int j = 0; j < count.value; ++j) {
                           const A d = v[0][j] - about;
                           sum += d;
                           squares += d * d;
                         }
                       });
  }
  sum = assay::block_reduce<BLOCK>(sum, assay::Sum{});
  squares = assay::block_reduce<BLOCK>(squares, assay::Sum{});
  if (threadIdx.x != 0) return;
  const A count = A((batch - own.part + parts - 1) / parts) * A(plane);
  A* const mine = kept + 3 * static_cast<long long>(blockIdx.x);
  mine[0] = count;
  mine[1] = about + sum / count;
  mine[2] = squares - sum * (sum / count);
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    batchnorm2d_write(T* y, const assay::accumulator<T>* kept, const T* x, const T* w, const T* b,
                      int batch, int channels, long long plane, int parts) {
  using A = assay::accumulator<T>;
  const Own own(parts);
  kept += static_cast<long long>(own.channel) * parts * 3;
  const auto s = assay::joined<true, BLOCK>(kept, batch * plane, parts, EPS<T>);
  const A scale = s.rstd * assay::to_float(w[own.channel]), shift = assay::to_float(b[own.channel]);
  for (int image = own.part; image < batch; image += parts) {
    const long long at = (static_cast<long long>(image) * channels + own.channel) * plane;
    const T* const in[1] = {x + at};
    T* const to = y + at;
    assay::walk<BLOCK>(in, to, plane, [&](auto& v, long long i, auto count) {
#pragma unroll
      for (int j = 0; j < count.value; ++j)
        v[0][j] = (v[0][j] - s.mean) * scale + shift;
      assay::store(to + i, v[0]);
    });
  }
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    batchnorm2d_grad_parts(assay::accumulator<T>* kept, const T* dy, const T* x, int batch,
                           int channels, long long plane, int parts) {
  using A = assay::accumulator<T>;
  const Own own(parts);
  const A about = assay::near_mean(
      x + (static_cast<long long>(own.part) * channels + own.channel) * plane, plane);
  A sum = 0, squares = 0, of_g = 0, of_gd = 0;
  for (int image = own.part; image < batch; image += parts) {
    const long long at = (static_cast<long long>(image) * channels + own.channel) * plane;
    const T* const in[2] = {dy + at, x + at};
    assay::walk<BLOCK>(in, static_cast<const T*>(nullptr), plane,
                       [&](auto& v, long long, auto count) {
#pragma unroll
                         for (int j = 0; j < count.value; ++j) {
                           const A g = v[0][j];
                           const A d = v[1][j] - about;
                           sum += d;
                           squares += d * d;
                           of_g += g;
                           of_gd += g * d;
                         }
                       });
  }
  sum = assay::block_reduce<BLOCK>(sum, assay::Sum{});
  squares = assay::block_reduce<BLOCK>(squares, assay::Sum{});
  of_g = assay::block_reduce<BLOCK>(of_g, assay::Sum{});
  of_gd = assay::block_reduce<BLOCK>(of_gd, assay::Sum{});
  if (threadIdx.x != 0) return;
  const A count = A((batch - own.part + parts - 1) / parts) * A(plane);
  A* const mine = kept + 5 * static_cast<long long>(blockIdx.x);
  mine[0] = count;
  mine[1] = about + sum / count;
  mine[2] = squares - sum * (sum / count);
  mine[3] = of_g;
  mine[4] = of_gd - (sum / count) * of_g;  // about the mean of this part
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    batchnorm2d_grad_write(T* dx, T* dw, T* db, const assay::accumulator<T>* kept, const T* dy,
                           const T* x, const T* w, int batch, int channels, long long plane,
                           int parts) {
  using A = assay::accumulator<T>;
  const Own own(parts);
  kept += static_cast<long long>(own.channel) * parts * 5;
  const auto s = assay::joined<true, BLOCK, 5>(kept, batch * plane, parts, EPS<T>);
  A of_g = 0, of_gd = 0;
  for (int p = threadIdx.x; p < parts; p += BLOCK) {
    const A* const at = kept + 5 * p;
    of_g += at[3];
    of_gd += at[4] + (at[1] - s.mean) * at[3];  // moved to the mean of all
  }
  of_g = assay::block_reduce<BLOCK>(of_g, assay::Sum{});
  of_gd = assay::block_reduce<BLOCK>(of_gd, assay::Sum{});
  const A of_gh = of_gd * s.rstd;
  if (own.part == 0 && threadIdx.x == 0) {
    dw[own.channel] = assay::from_float<T>(of_gh);
    db[own.channel] = assay::from_float<T>(of_g);
  }
  const A scale = s.rstd * assay::to_float(w[own.channel]);
  const A count = A(batch * plane);
  const A mean_g = of_g / count, mean_gh = of_gh / count;
  for (int image = own.part; image < batch; image += parts) {
    const long long from = (static_cast<long long>(image) * channels + own.channel) * plane;
    const T* const in[2] = {dy + from, x + from};
    T* const to = dx + from;
    assay::walk<BLOCK>(in, to, plane, [&](auto& v, long long i, auto count) {
#pragma unroll
      for (int j = 0; j < count.value; ++j) {
        const A h = (v[1][j] - s.mean) * s.rstd;
        v[0][j] = scale * (v[0][j] - mean_g - h * mean_gh);
      }
      assay::store(to + i, v[0]);
    });
  }
}
