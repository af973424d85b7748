// y = v / max(least, sqrt(mean v^2)) with v = x - mean(x), means over size x size pixels around.
//
// lcn_centre, lcn_divide  one thread a pixel: v of all pixels, then y; windows out of L1 and L2
// lcn_tiled               a block has ROWS x COLUMNS pixels, and in shared memory x of the pixels
//                         around as far as two windows reach, and v as far as one does
//
// Means are over the pixels of a window that lie in the image. Each is summed row by row in one
// order, and v is centred before it is squared, so that no digits cancel where x is far from 0.
//
// shapes  x, y: planes of h x w; v: the same in the accumulator's type
// bytes   2 * n * sizeof(T); in two passes 2 of the accumulator's more
// FLOPs   3 * size^2 + 6 a pixel; tiled the centring of the pixels around once more
#include "assay.cuh"

// The part of a window around a pixel that lies in the image, last row and column included.
struct Window {
  int top, bottom, left, right;
  __device__ __forceinline__ Window(int row, int column, int h, int w, int half)
      : top(row < half ? 0 : row - half),
        bottom(h - 1 - row < half ? h - 1 : row + half),
        left(column < half ? 0 : column - half),
        right(w - 1 - column < half ? w - 1 : column + half) {}
  __device__ __forceinline__ int count() const { return (bottom - top + 1) * (right - left + 1); }
  // Sum of of(row, column) over it.
  template <typename A, typename F>
  __device__ __forceinline__ A sum(F of) const {
    A total = 0;
    for (int r = top; r <= bottom; ++r)
      for (int c = left; c <= right; ++c) total += of(r, c);
    return total;
  }
};

template <typename A>
__device__ __forceinline__ A divided(A v, A squares, int count, A least) {
  const A sigma = sqrt(squares / A(count));
  return v / (sigma < least ? least : sigma);  // a NaN stays one
}

template <typename T>
__global__ void lcn_centre(assay::accumulator<T>* v, const T* x, long long n, int h, int w,
                           int size) {
  using A = assay::accumulator<T>;
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const T* const plane = x + i / w / h * h * w;
  const Window own(int(i / w % h), int(i % w), h, w, size / 2);
  const A sum = own.sum<A>([&](int r, int c) {
    return assay::to_float(plane[static_cast<long long>(r) * w + c]);
  });
  v[i] = assay::to_float(x[i]) - sum / A(own.count());
}

template <typename T>
__global__ void lcn_divide(T* y, const assay::accumulator<T>* v, long long n, int h, int w,
                           int size, assay::accumulator<T> least) {
  using A = assay::accumulator<T>;
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const A* const plane = v + i / w / h * h * w;
  const Window own(int(i / w % h), int(i % w), h, w, size / 2);
  const A squares = own.sum<A>([&](int r, int c) {
    const A far = plane[static_cast<long long>(r) * w + c];
    return far * far;
  });
  y[i] = assay::from_float<T>(divided(v[i], squares, own.count(), least));
}

template <typename T, int ROWS, int COLUMNS>
__global__ void lcn_tiled(T* y, const T* x, int h, int w, int size,
                          assay::accumulator<T> least) {
  using A = assay::accumulator<T>;
  extern __shared__ __align__(16) unsigned char shared[];
  const int half = size / 2;
  const int across = (w + COLUMNS - 1) / COLUMNS, down = (h + ROWS - 1) / ROWS;
  const int tile = blockIdx.x % (across * down);
  const long long plane = static_cast<long long>(blockIdx.x / (across * down)) * h * w;
  const int top = tile / across * ROWS, left = tile % across * COLUMNS;

  // x of rows from top - 2 half, then v of rows from top - half; what is beyond the image is unread.
  const int wide = COLUMNS + 4 * half, less = COLUMNS + 2 * half;
  const int tall = ROWS + 4 * half, lower = ROWS + 2 * half;
  A* const given = reinterpret_cast<A*>(shared);
  A* const centred = given + tall * wide;
  for (int j = threadIdx.x; j < tall * wide; j += ROWS * COLUMNS) {
    const int r = top - 2 * half + j / wide, c = left - 2 * half + j % wide;
    if (r >= 0 && r < h && c >= 0 && c < w)
      given[j] = assay::to_float(x[plane + static_cast<long long>(r) * w + c]);
  }
  __syncthreads();
  for (int j = threadIdx.x; j < lower * less; j += ROWS * COLUMNS) {
    const int r = top - half + j / less, c = left - half + j % less;
    if (r < 0 || r >= h || c < 0 || c >= w) continue;
    const Window own(r, c, h, w, half);
    const auto at = [&](int row, int column) {
      return given[(row - top + 2 * half) * wide + column - left + 2 * half];
    };
    centred[j] = at(r, c) - own.sum<A>(at) / A(own.count());
  }
  __syncthreads();
  const int r = top + threadIdx.x / COLUMNS, c = left + threadIdx.x % COLUMNS;
  if (r >= h || c >= w) return;
  const Window own(r, c, h, w, half);
  const auto at = [&](int row, int column) {
    return centred[(row - top + half) * less + column - left + half];
  };
  const A squares = own.sum<A>([&](int row, int column) {
    const A far = at(row, column);
    return far * far;
  });
  y[plane + static_cast<long long>(r) * w + c] =
      assay::from_float<T>(divided(at(r, c), squares, own.count(), least));
}
