// The largest or the mean of each k x k window of an image, windows apart.
//
// pool_naive    one thread an element of y, which walks its window.
// pool_vectorised
//               for k = 2, 3, 4 and windows that fill the image: a thread has vectors of 16 bytes of
//               each of k rows, which are whole windows.
// pool_windows  for other images: one thread an element of y, k a constant, indices of 32 bits.
//
// shapes  x: planes of h x w; y: planes of (h / k) x (w / k); contiguous, of one type
// bytes   (1 + 1 / k^2) * sizeof(T) an element of x
// FLOPs   1 an element of x
#include "pooling.cuh"

struct Largest {
  template <typename A>
  static __device__ __forceinline__ A take(A so_far, A v) {
    return beats(v, so_far) ? v : so_far;
  }
  template <typename A>
  static __device__ __forceinline__ A of(A taken, int) {
    return taken;
  }
};
struct Mean {
  template <typename A>
  static __device__ __forceinline__ A take(A so_far, A v) {
    return so_far + v;
  }
  template <typename A>
  static __device__ __forceinline__ A of(A taken, int count) {
    return taken / A(count);
  }
};

// Of the window whose element (r, c) is at(r, c).
template <typename How, typename At>
__device__ __forceinline__ auto taken(At at, int k) {
  auto so_far = at(0, 0);
#pragma unroll
  for (int r = 0; r < k; ++r)
#pragma unroll
    for (int c = 0; c < k; ++c)
      if (r + c > 0) so_far = How::take(so_far, at(r, c));
  return How::of(so_far, k * k);
}
template <typename How, typename T>
__device__ __forceinline__ T taken_from(const T* corner, long long w, int k) {
  const auto at = [&](int r, int c) { return assay::to_float(corner[r * w + c]); };
  return assay::from_float<T>(taken<How>(at, k));
}

template <typename How, typename T>
__global__ void pool_naive(T* y, const T* x, long long n, int h, int w, int k) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int across = w / k, down = h / k;
  const long long plane = i / across / down;
  const T* const corner = x + (plane * h + i / across % down * k) * w + i % across * k;
  assay::accumulator<T> so_far = assay::to_float(corner[0]);
  for (int r = 0; r < k; ++r)
    for (int c = 0; c < k; ++c)
      if (r + c > 0)
        so_far = How::take(so_far, assay::to_float(corner[static_cast<long long>(r) * w + c]));
  y[i] = assay::from_float<T>(How::of(so_far, k * k));
}

// Index: `unsigned` for up to 2^31 windows.
template <typename How, typename T, int K, typename Index>
__global__ void pool_windows(T* y, const T* x, Index n, int h, int w) {
  const Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned across = w / K, down = h / K;
  const Index line = i / across, plane = line / down;
  const long long row = static_cast<long long>(plane) * h + (line - plane * down) * K;
  y[i] = taken_from<How>(x + row * w + (i - line * across) * K, w, K);
}

// Where a view begins at an odd address. Not inlined, or the compiler would put its loop in front of
// what is usual, and each block jump to code that no cache has yet.
template <typename How, typename P, int K, typename T>
__device__ __noinline__ void taken_one_by_one(T* y, const T* x, long long width) {
#pragma unroll 1
  for (int j = 0; j < P::WINDOWS; ++j) y[j] = taken_from<How>(x + j * K, width, K);
}

template <typename How, typename T, int K, int N>
__global__ void __launch_bounds__(128)
    pool_vectorised(T* y, const T* x, unsigned bands, unsigned pieces) {
  using P = Piece<T, K, N>;
  const Spot<P, K> spot(pieces, 1);
  if (spot.piece >= pieces || spot.band >= bands) return;
  const bool usual = P::image_aligned(x) && P::windows_aligned(y);
  x += spot.in_image(spot.band);
  y += spot.in_windows(spot.band);
  if (!usual) return taken_one_by_one<How, P, K>(y, x, spot.width());

  P piece;
  piece.fetch(x, spot.width());
  assay::Wide<T, P::WINDOWS> out;
#pragma unroll
  for (int j = 0; j < P::WINDOWS; ++j)
    out[j] = taken<How>([&](int r, int c) { return piece.at(r, j * K + c); }, K);
  assay::store(y, out);
}
