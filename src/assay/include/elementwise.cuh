// Element by element, y[i] = f(a[i], b[i], ...): the tile that every pointwise kernel is made of.
//
// Such a kernel is as fast as memory if enough bytes are on their way: a thread loads UNROLL
// vectors of 16 bytes of each input before it uses the first, which at 2,048 threads a
// multiprocessor is 32 KB in flight for UNROLL = 1 and up to 128 KB for 4.
#pragma once

#include "assay.cuh"

namespace assay {

template <typename T, int BLOCK, int UNROLL>
inline constexpr int map_tile = BLOCK * UNROLL * widest<T>;

// One tile of y, by a block: f takes one T of each of the K inputs, at most six, and gives a T.
template <int BLOCK, int UNROLL, typename T, int K, typename F>
__device__ __forceinline__ void map(T* y, const T* const (&in)[K], long long n, F f) {
  constexpr int N = widest<T>;
  constexpr int TILE = map_tile<T, BLOCK, UNROLL>;
  const auto call = [&](const T(&v)[K]) {
    if constexpr (K == 1) return f(v[0]);
    if constexpr (K == 2) return f(v[0], v[1]);
    if constexpr (K == 3) return f(v[0], v[1], v[2]);
    if constexpr (K == 4) return f(v[0], v[1], v[2], v[3]);
    if constexpr (K == 5) return f(v[0], v[1], v[2], v[3], v[4]);
    if constexpr (K == 6) return f(v[0], v[1], v[2], v[3], v[4], v[5]);
  };
  const long long first = static_cast<long long>(blockIdx.x) * TILE;
  // The last tile may be cut short, and a view may start anywhere: 16-byte accesses would then
  // leave the array or trap. The condition is the same for the whole block, so no warp diverges.
  bool vectors = first + TILE <= n && aligned(y);
#pragma unroll
  for (int k = 0; k < K; ++k) vectors = vectors && aligned(in[k]);

  if (vectors) {
    const long long mine = first + threadIdx.x * N;
    Vec<T, N> v[UNROLL][K];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u)
#pragma unroll
      for (int k = 0; k < K; ++k) v[u][k] = load<N>(in[k] + mine + u * BLOCK * N);
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      Vec<T, N> out;
#pragma unroll
      for (int j = 0; j < N; ++j) {
        T one[K];
#pragma unroll
        for (int k = 0; k < K; ++k) one[k] = v[u][k][j];
        out[j] = call(one);
      }
      store(y + mine + u * BLOCK * N, out);
    }
  } else {
    for (long long i = first + threadIdx.x; i < first + TILE && i < n; i += BLOCK) {
      T one[K];
#pragma unroll
      for (int k = 0; k < K; ++k) one[k] = in[k][i];
      y[i] = call(one);
    }
  }
}

// F::of<T>(a, ...) computes in T's accumulator what is stored as T: rounded once, by the store.
template <typename F, typename T>
struct Rounded {
  template <typename... In>
  __device__ __forceinline__ T operator()(In... v) const {
    return from_float<T>(F::template of<T>(to_float(v)...));
  }
};

template <typename F, typename T, int BLOCK, int UNROLL>
__global__ void __launch_bounds__(BLOCK) map1(T* y, const T* a, long long n) {
  const T* const in[1] = {a};
  map<BLOCK, UNROLL>(y, in, n, Rounded<F, T>{});
}
template <typename F, typename T, int BLOCK, int UNROLL>
__global__ void __launch_bounds__(BLOCK) map2(T* y, const T* a, const T* b, long long n) {
  const T* const in[2] = {a, b};
  map<BLOCK, UNROLL>(y, in, n, Rounded<F, T>{});
}
template <typename F, typename T, int BLOCK, int UNROLL>
__global__ void __launch_bounds__(BLOCK) map3(T* y, const T* a, const T* b, const T* c,
                                              long long n) {
  const T* const in[3] = {a, b, c};
  map<BLOCK, UNROLL>(y, in, n, Rounded<F, T>{});
}

// One thread an element: the plain version that the vectorised one is to be read beside.
template <typename F, typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK) map1_naive(T* y, const T* a, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x;
  if (i < n) y[i] = Rounded<F, T>{}(a[i]);
}
template <typename F, typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK) map3_naive(T* y, const T* a, const T* b, const T* c,
                                                    long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x;
  if (i < n) y[i] = Rounded<F, T>{}(a[i], b[i], c[i]);
}

}  // namespace assay
