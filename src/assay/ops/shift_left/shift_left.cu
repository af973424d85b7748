// x[i] = x[i + 1] in place: every thread reads before any thread writes.
//
// shift_left_block   one block, a piece of BLOCK elements at a time
// shift_left_edges   keeps the first element of each block's right neighbour
// shift_left_blocks  each block shifts its own BLOCK elements, the last from what was kept
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
