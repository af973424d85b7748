// dx = y (dy - sum_j dy_j y_j) over the last dimension, from what softmax wrote.
//
// softmax_grad_held    both rows lie in registers: read once each.
// softmax_grad_walked  longer rows: one walk for the sum, another for dx.
//
// shapes  dx, dy, y: (rows, n), contiguous, of one type
// bytes   3 * rows * n * sizeof(T); walked, the second reading finds the rows in a cache
// FLOPs   4 * rows * n
#include "rows.cuh"

template <typename T, int THREADS, int VECS, assay::Row ROW>
__global__ void
    __launch_bounds__(assay::threads_of_block<THREADS>, assay::blocks_of_held<T, THREADS, 2 * VECS>)
    softmax_grad_held(T* dx, const T* dy, const T* y, long long rows, long long n) {
  using A = assay::accumulator<T>;
  assay::differentiate_held<T, THREADS, VECS, ROW>(
      dx, dy, y, rows, n, [](A g, A p) { return g * p; },
      [](A g, A p, A sum) { return p * (g - sum); });
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    softmax_grad_walked(T* dx, const T* dy, const T* y, long long rows, long long n) {
  using A = assay::accumulator<T>;
  const T* const in[2] = {dy + blockIdx.x * n, y + blockIdx.x * n};
  T* const to = dx + blockIdx.x * n;
  A sum = 0;
  assay::walk<BLOCK>(in, to, n, [&](auto& v, long long, auto count) {
#pragma unroll
    for (int j = 0; j < count.value; ++j)
      sum += v[0][j] * v[1][j];
  });
  sum = assay::block_reduce<BLOCK>(sum, assay::Sum{});
  assay::walk<BLOCK>(in, to, n, [&](auto& v, long long i, auto count) {
#pragma unroll
    for (int j = 0; j < count.value; ++j)
      v[0][j] = v[1][j] * (v[0][j] - sum);
    assay::store(to + i, v[0]);
  });
}
