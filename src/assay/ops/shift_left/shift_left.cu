// x[i] = x[i + 1] in place: every thread reads before any thread writes.
//
// shift_left_block   one block, a piece of BLOCK elements at a time
// shift_left_edges   keeps the first element of each block's right neighbour
// shift_left_blocks  each block shifts its own BLOCK elements, the last from what was kept
// shift_left_vectors the same of VECS vectors of 16 bytes a thread, which ask for their elements
//                    while the edges are still being kept
//
// shapes  x: n elements; edges: one a block
// bytes   2 * n * sizeof(T)
// FLOPs   none
#include "assay.cuh"

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK) shift_left_block(T* x, long long n) {
  for (long long first = 0; first < n - 1; first += BLOCK) {
    const long long i = first + threadIdx.x;
    T next;
    if (i < n - 1) next = x[i + 1];
    // Without this, a thread might write x[i] before its left neighbour has read it.
    __syncthreads();
    if (i < n - 1) x[i] = next;
    // The next piece is read only now, so its first element was still what it was.
  }
}

template <typename T>
__global__ void shift_left_edges(T* edges, const T* x, long long n, int count, int block) {
  assay::let_next_kernel_start();
  const int b = blockIdx.x * blockDim.x + threadIdx.x;
  const long long i = (static_cast<long long>(b) + 1) * block;
  if (b < count) edges[b] = x[i < n ? i : n - 1];
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK) shift_left_blocks(T* x, const T* edges, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x;
  T next;
  if (i < n - 1) next = threadIdx.x == BLOCK - 1 ? edges[blockIdx.x] : x[i + 1];
  __syncthreads();
  if (i < n - 1) x[i] = next;
}

template <typename T, int BLOCK, int VECS>
__global__ void __launch_bounds__(BLOCK) shift_left_vectors(T* x, const T* edges, long long n) {
  constexpr int N = assay::widest<T>, TILE = BLOCK * VECS * N;
  x += static_cast<long long>(blockIdx.x) * TILE;
  n -= static_cast<long long>(blockIdx.x) * TILE;
  if (assay::aligned(x) && TILE < n) {
    assay::Vec<T, N> v[VECS];
    T next[VECS];  // what follows a vector
#pragma unroll
    for (int u = 0; u < VECS; ++u) v[u] = assay::load<N>(x + (u * BLOCK + threadIdx.x) * N);
#pragma unroll
    for (int u = 0; u < VECS; ++u) {
      const int end = (u * BLOCK + threadIdx.x + 1) * N;
      if (end < TILE) next[u] = x[end];
    }
    assay::await_previous_kernel();
    if (threadIdx.x == BLOCK - 1) next[VECS - 1] = edges[blockIdx.x];
    __syncthreads();
#pragma unroll
    for (int u = 0; u < VECS; ++u) {
#pragma unroll
      for (int j = 0; j < N; ++j) v[u][j] = j + 1 < N ? v[u][j + 1] : next[u];
      assay::store(x + (u * BLOCK + threadIdx.x) * N, v[u]);
    }
  } else {  // the end of the array, or a view that begins between two vectors
    T next[VECS * N];
    assay::await_previous_kernel();
#pragma unroll
    for (int u = 0; u < VECS * N; ++u) {
      const int i = u * BLOCK + threadIdx.x;
      if (i < n - 1) next[u] = i == TILE - 1 ? edges[blockIdx.x] : x[i + 1];
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < VECS * N; ++u) {
      const int i = u * BLOCK + threadIdx.x;
      if (i < n - 1) x[i] = next[u];
    }
  }
}
