// What pooling and its gradients share: which element beats another, and the windows of a thread.
//
// A band is the K rows of a plane that one row of windows covers. Where windows fill the planes,
// bands follow one another from plane to plane, and a block is as wide as a band or has part of
// one: so no thread divides to find its place.
#pragma once

#include "assay.cuh"

// The largest is the first of several; a NaN is larger than all, and the last NaN is the largest.
template <typename A>
__device__ __forceinline__ bool beats(A v, A best) {
  return v > best || v != v;
}

// N neighbours as they lie in memory: halves by the word, because one half alone takes a register.
template <typename T, int N, bool WORDS = assay::paired<T> && (N > 1)>
struct Lying {
  assay::Vec<T, N> values;
  __device__ __forceinline__ void fetch(const T* p) { values = assay::load<N>(p); }
  __device__ __forceinline__ assay::accumulator<T> operator[](int j) const {
    return assay::to_float(values[j]);
  }
};
template <typename T, int N>
struct Lying<T, N, true> {
  assay::Vec<unsigned, N / 2> words;
  __device__ __forceinline__ void fetch(const T* p) {
    words = assay::load<N / 2>(reinterpret_cast<const unsigned*>(p));
  }
  __device__ __forceinline__ float operator[](int j) const {
    const float2 pair = assay::pair_of(words[j / 2], T());
    return j % 2 ? pair.y : pair.x;
  }
};

// The columns of one thread in a band: as few vectors of N as are whole windows, for K = 2, 3, 4.
template <typename T, int K, int N>
struct Piece {
  static_assert(K >= 2 && K <= 4, "their least common multiple with N is spelled out here");
  static constexpr int COLUMNS = K == 3 ? 3 * N : K > N ? K : N;
  static constexpr int VECTORS = COLUMNS / N, WINDOWS = COLUMNS / K;
  Lying<T, N> row[K][VECTORS];

  // x: the first element; width: of a row.
  __device__ __forceinline__ void fetch(const T* x, long long width) {
#pragma unroll
    for (int r = 0; r < K; ++r)
#pragma unroll
      for (int v = 0; v < VECTORS; ++v) row[r][v].fetch(x + r * width + v * N);
  }
  __device__ __forceinline__ assay::accumulator<T> at(int r, int c) const {
    return row[r][c / N][c % N];
  }
  // Stores row r of the piece, whose element c is f(c).
  template <typename F>
  static __device__ __forceinline__ void write(T* row, F f) {
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
      assay::Wide<T, N> out;
#pragma unroll
      for (int j = 0; j < N; ++j) out[j] = f(v * N + j);
      assay::store(row + v * N, out);
    }
  }
  static __device__ __forceinline__ bool image_aligned(const T* x) {
    return assay::aligned<N * sizeof(T)>(x);
  }
  static __device__ __forceinline__ bool windows_aligned(const T* y) {
    return assay::aligned<WINDOWS * sizeof(T)>(y);
  }
};

// Where a thread's piece lies, for up to 2^31 bands. Block (x, y) has blockDim.x pieces of each of
// blockDim.y bands, or of as many bands of each thread, which has every blockDim.y-th.
template <typename P, int K>
struct Spot {
  unsigned piece, pieces;  // of a band
  unsigned band;           // the thread's first
  __device__ __forceinline__ Spot(unsigned pieces, unsigned bands_of_thread)
      : piece(blockIdx.y * blockDim.x + threadIdx.x),
        pieces(pieces),
        band(blockIdx.x * bands_of_thread * blockDim.y + threadIdx.y) {}
  __device__ __forceinline__ long long width() const {
    return static_cast<long long>(pieces) * P::COLUMNS;
  }
  __device__ __forceinline__ long long in_image(unsigned band) const {
    return (static_cast<long long>(band) * (K * pieces) + piece) * P::COLUMNS;
  }
  __device__ __forceinline__ long long in_windows(unsigned band) const {
    return (static_cast<long long>(band) * pieces + piece) * P::WINDOWS;
  }
};
