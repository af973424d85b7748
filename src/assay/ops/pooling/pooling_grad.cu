// Gradients of the largest and of the mean of each k x k window of an image, windows apart.
//
// maxpool2d_grad, avgpool2d_grad
//               for k = 2, 3, 4 and windows that fill the image: a thread has vectors of 16 bytes of
//               each of k rows, which are whole windows, of one band of windows or two.
// *_columns     for other images: one thread a column of a window, and of what is in none.
//
// All of a window's dy goes to the largest, which is the first of several, or the last NaN; or an
// equal part to each. What is in no window gets 0.
//
// shapes  x, dx: planes of h x w; dy: planes of (h / k) x (w / k); contiguous, of one type
// bytes   (2 + 1 / k^2) * sizeof(T) an element of x; of the mean, which needs no x, one less
// FLOPs   1 an element of x
#include "pooling.cuh"

// Place of the largest, r * k + c, of the window whose element (r, c) is at(r, c).
template <typename At>
__device__ __forceinline__ int place_of_largest(At at, int k) {
  auto best = at(0, 0);
  int place = 0;
#pragma unroll
  for (int r = 0; r < k; ++r)
#pragma unroll
    for (int c = 0; c < k; ++c)
      if (const auto v = at(r, c); beats(v, best)) best = v, place = r * k + c;
  return place;
}

// One column of a window. x, dx: the window's corner.
template <typename T>
__device__ __forceinline__ void largest_in_column(T* dx, T g, const T* x, long long w, int column,
                                                  int k) {
  const auto at = [&](int r, int c) { return assay::to_float(x[r * w + c]); };
  const int place = place_of_largest(at, k);
#pragma unroll
  for (int r = 0; r < k; ++r)
    dx[r * w + column] = place == r * k + column ? g : assay::from_float<T>(0);
}
template <typename T>
__device__ __forceinline__ void part_in_column(T* dx, T g, long long w, int column, int k) {
  const T part = assay::from_float<T>(assay::to_float(g) / assay::accumulator<T>(k * k));
#pragma unroll
  for (int r = 0; r < k; ++r) dx[r * w + column] = part;
}


// What a thread has, by columns, where a view begins at an odd address. Not inlined, or the compiler
// would put its loops in front of what is usual, and each block jump to code that no cache has yet.
template <typename P, int K, int BANDS, typename T>
__device__ __noinline__ void largest_by_columns(T* dx, const T* dy, const T* x, Spot<P, K> spot,
                                                unsigned bands) {
#pragma unroll 1
  for (unsigned u = 0, band = spot.band; u < BANDS && band < bands; ++u, band += blockDim.y)
#pragma unroll 1
    for (int c = 0; c < P::COLUMNS; ++c) {
      const long long corner = spot.in_image(band) + c / K * K;
      largest_in_column(dx + corner, dy[spot.in_windows(band) + c / K], x + corner, spot.width(),
                        c % K, K);
    }
}
template <typename P, int K, int BANDS, typename T>
__device__ __noinline__ void part_by_columns(T* dx, const T* dy, Spot<P, K> spot, unsigned bands) {
#pragma unroll 1
  for (unsigned u = 0, band = spot.band; u < BANDS && band < bands; ++u, band += blockDim.y)
#pragma unroll 1
    for (int c = 0; c < P::COLUMNS; ++c)
      part_in_column(dx + spot.in_image(band) + c / K * K, dy[spot.in_windows(band) + c / K],
                     spot.width(), c % K, K);
}

// A band beyond the last reads the last again, so that all loads are sent off without a branch.
template <typename T, int K, int N, int BANDS>
__global__ void __launch_bounds__(128)
    maxpool2d_grad(T* dx, const T* dy, const T* x, unsigned bands, unsigned pieces) {
  using P = Piece<T, K, N>;
  const Spot<P, K> spot(pieces, BANDS);
  if (spot.piece >= pieces) return;
  if (!P::image_aligned(x) || !P::image_aligned(dx) || !P::windows_aligned(dy))
    return largest_by_columns<P, K, BANDS>(dx, dy, x, spot, bands);

  P piece[BANDS];
  Lying<T, P::WINDOWS> g[BANDS];
#pragma unroll
  for (int u = 0; u < BANDS; ++u) {
    const unsigned band = min(spot.band + u * blockDim.y, bands - 1);
    piece[u].fetch(x + spot.in_image(band), spot.width());
    g[u].fetch(dy + spot.in_windows(band));
  }
#pragma unroll
  for (int u = 0; u < BANDS; ++u) {
    const unsigned band = spot.band + u * blockDim.y;
    if (band >= bands) return;
    int place[P::WINDOWS];
#pragma unroll
    for (int j = 0; j < P::WINDOWS; ++j)
      place[j] = place_of_largest([&](int r, int c) { return piece[u].at(r, j * K + c); }, K);
#pragma unroll
    for (int r = 0; r < K; ++r)
      P::write(dx + spot.in_image(band) + r * spot.width(), [&](int c) {
        return place[c / K] == r * K + c % K ? g[u][c / K] : assay::accumulator<T>(0);
      });
  }
}

template <typename T, int K, int N, int BANDS>
__global__ void __launch_bounds__(128)
    avgpool2d_grad(T* dx, const T* dy, unsigned bands, unsigned pieces) {
  using P = Piece<T, K, N>;
  const Spot<P, K> spot(pieces, BANDS);
  if (spot.piece >= pieces) return;
  if (!P::image_aligned(dx) || !P::windows_aligned(dy))
    return part_by_columns<P, K, BANDS>(dx, dy, spot, bands);

  Lying<T, P::WINDOWS> g[BANDS];
#pragma unroll
  for (int u = 0; u < BANDS; ++u)
    g[u].fetch(dy + spot.in_windows(min(spot.band + u * blockDim.y, bands - 1)));
#pragma unroll
  for (int u = 0; u < BANDS; ++u) {
    const unsigned band = spot.band + u * blockDim.y;
    if (band >= bands) return;
    assay::accumulator<T> part[P::WINDOWS];
#pragma unroll
    for (int j = 0; j < P::WINDOWS; ++j) part[j] = g[u][j] / assay::accumulator<T>(K * K);
#pragma unroll
    for (int r = 0; r < K; ++r)
      P::write(dx + spot.in_image(band) + r * spot.width(), [&](int c) { return part[c / K]; });
  }
}

// A column of a band, by its number: bands are counted with what a plane has below its windows.
// Index: `unsigned` for up to 2^31 columns.
template <typename Index>
struct Column {
  long long corner, window;  // in x; in dy, or -1
  unsigned column, rows;     // counted from the corner; of the band that the plane has
  __device__ __forceinline__ Column(Index i, unsigned h, unsigned w, unsigned k) {
    const unsigned across = w / k, down = h / k, bands = down + (down * k < h);
    const Index line = i / w, plane = line / bands;
    const unsigned place = unsigned(i - line * w), left = place / k;
    const unsigned band = unsigned(line - plane * bands), top = band * k;
    column = place - left * k;
    rows = min(k, h - top);
    corner = (static_cast<long long>(plane) * h + top) * w + left * k;
    const bool inside = band < down && left < across;
    window = inside ? (static_cast<long long>(plane) * down + band) * across + left : -1;
  }
  template <typename T>
  __device__ __forceinline__ void clear(T* dx, long long w) const {
    for (unsigned r = 0; r < rows; ++r) dx[corner + r * w + column] = assay::from_float<T>(0);
  }
};

// Thread i has column i: fill(column, k), or zeros where it is in no window. K: that k, or 0 for any.
template <int K, typename T, typename Index, typename F>
__device__ __forceinline__ void by_column(T* dx, Index n, int h, int w, int k, F fill) {
  const Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int side = K ? K : k;
  const Column<Index> mine(i, h, w, side);
  if (mine.window < 0)
    mine.clear(dx, w);
  else
    fill(mine, side);
}

template <typename T, int K, typename Index>
__global__ void maxpool2d_grad_columns(T* dx, const T* dy, const T* x, Index n, int h, int w,
                                       int k) {
  by_column<K>(dx, n, h, w, k, [=](auto& at, int side) {
    largest_in_column(dx + at.corner, dy[at.window], x + at.corner, w, at.column, side);
  });
}

template <typename T, int K, typename Index>
__global__ void avgpool2d_grad_columns(T* dx, const T* dy, Index n, int h, int w, int k) {
  by_column<K>(dx, n, h, w, k, [=](auto& at, int side) {
    part_in_column(dx + at.corner, dy[at.window], w, at.column, side);
  });
}
