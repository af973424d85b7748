// The largest or the mean of each k x k window of an image, windows apart, and their gradients.
//
// *_naive       one thread an element of y, which walks its window.
// *_vectorised  for k = 2: one thread 16 bytes of each of two rows, which are 16 / sizeof(T) / 2
//               windows.
// *_grad        one thread an element of dx: it belongs to one window or to none.
//
// The largest is the first of several; a NaN is larger than all, and the last NaN is the largest,
// as in torch.
//
// shapes  x, dx: planes of h x w; y, dy: planes of (h / k) x (w / k); contiguous, of one type
// bytes   (1 + 1 / k^2) * sizeof(T) an element of x; maxpool's gradient one more
// FLOPs   1 an element of x
#include "assay.cuh"

template <typename A>
__device__ __forceinline__ bool beats(A v, A best) {
  return v > best || v != v;
}

struct Largest {
  template <typename A>
  static __device__ __forceinline__ A take(A so_far, A v, bool first) {
    return first || beats(v, so_far) ? v : so_far;
  }
  template <typename A>
  static __device__ __forceinline__ A of(A taken, int) {
    return taken;
  }
};
struct Mean {
  template <typename A>
  static __device__ __forceinline__ A take(A so_far, A v, bool first) {
    return first ? v : so_far + v;
  }
  template <typename A>
  static __device__ __forceinline__ A of(A taken, int count) {
    return taken / A(count);
  }
};

template <typename How, typename T>
__device__ __forceinline__ void pool(T* y, const T* x, long long n, int h, int w, int k) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int across = w / k, down = h / k;
  const long long plane = i / across / down;
  const T* const corner = x + (plane * h + i / across % down * k) * w + i % across * k;
  assay::accumulator<T> taken = 0;
  for (int r = 0; r < k; ++r)
    for (int c = 0; c < k; ++c)
      taken = How::take(taken, assay::to_float(corner[static_cast<long long>(r) * w + c]),
                        r == 0 && c == 0);
  y[i] = assay::from_float<T>(How::of(taken, k * k));
}

// `lines` rows of y in all planes.
template <typename How, typename T>
__device__ __forceinline__ void pool_pairs(T* y, const T* x, long long lines, int h, int w) {
  constexpr int N = assay::widest<T>, HALF = N / 2;
  const int across = w / 2, pieces = (across + HALF - 1) / HALF;
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long line = i / pieces;
  if (line >= lines) return;
  const int first = int(i % pieces) * HALF, down = h / 2;
  const T* const upper = x + (line / down * h + line % down * 2) * w + 2 * first;
  T* const to = y + line * across + first;

  const auto of = [](T a, T b, T c, T d) {
    auto taken = How::take(assay::to_float(a), assay::to_float(a), true);
    taken = How::take(taken, assay::to_float(b), false);
    taken = How::take(taken, assay::to_float(c), false);
    taken = How::take(taken, assay::to_float(d), false);
    return assay::from_float<T>(How::of(taken, 4));
  };
  if (w % N == 0 && assay::aligned(x) && assay::aligned<8>(y)) {
    const auto a = assay::load<N>(upper), b = assay::load<N>(upper + w);
    assay::Vec<T, HALF> out;
#pragma unroll
    for (int j = 0; j < HALF; ++j) out[j] = of(a[2 * j], a[2 * j + 1], b[2 * j], b[2 * j + 1]);
    assay::store(to, out);
  } else {
    for (int j = 0; j < HALF && first + j < across; ++j)
      to[j] = of(upper[2 * j], upper[2 * j + 1], upper[w + 2 * j], upper[w + 2 * j + 1]);
  }
}

template <typename T>
__global__ void maxpool2d_naive(T* y, const T* x, long long n, int h, int w, int k) {
  pool<Largest>(y, x, n, h, w, k);
}
template <typename T>
__global__ void avgpool2d_naive(T* y, const T* x, long long n, int h, int w, int k) {
  pool<Mean>(y, x, n, h, w, k);
}
template <typename T>
__global__ void maxpool2d_vectorised(T* y, const T* x, long long lines, int h, int w) {
  pool_pairs<Largest>(y, x, lines, h, w);
}
template <typename T>
__global__ void avgpool2d_vectorised(T* y, const T* x, long long lines, int h, int w) {
  pool_pairs<Mean>(y, x, lines, h, w);
}

// Where element i of the image lies: its window in y, or -1.
struct Place {
  long long plane, window;
  int row, column;
  __device__ __forceinline__ Place(long long i, int h, int w, int k) {
    const int across = w / k, down = h / k;
    plane = i / w / h;
    row = int(i / w % h);
    column = int(i % w);
    const bool inside = row / k < down && column / k < across;
    window = inside ? (plane * down + row / k) * across + column / k : -1;
  }
};

template <typename T>
__global__ void maxpool2d_grad(T* dx, const T* dy, const T* x, long long n, int h, int w, int k) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const Place at(i, h, w, k);
  T mine = assay::from_float<T>(0);
  if (at.window >= 0) {
    const int top = at.row / k * k, left = at.column / k * k;
    const T* const corner = x + (at.plane * h + top) * w + left;
    assay::accumulator<T> best = assay::to_float(corner[0]);
    int place = 0;
    for (int j = 0; j < k * k; ++j) {
      const auto v = assay::to_float(corner[static_cast<long long>(j / k) * w + j % k]);
      if (beats(v, best)) best = v, place = j;
    }
    if (place == (at.row - top) * k + at.column - left) mine = dy[at.window];
  }
  dx[i] = mine;
}

template <typename T>
__global__ void avgpool2d_grad(T* dx, const T* dy, long long n, int h, int w, int k) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const Place at(i, h, w, k);
  const auto part = at.window < 0 ? 0 : assay::to_float(dy[at.window]) / (k * k);
  dx[i] = assay::from_float<T>(part);
}
