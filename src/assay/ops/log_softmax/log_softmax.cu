// y = x - max - log sum exp(x - max) over the last dimension, and dx = dy - exp(y) sum dy.
//
// log_softmax_held, log_softmax_grad_held      a row in registers of a warp or a block, read once
// log_softmax_walked, log_softmax_grad_walked  longer rows: one walk to reduce, another to write
//
// shapes  x, y, dx, dy: (rows, n), contiguous, of one type
// bytes   2 * rows * n * sizeof(T); the gradient 3 * rows * n * sizeof(T)
// FLOPs   5 * rows * n; the gradient 4 * rows * n, counting exp as one
#include "rows.cuh"

template <typename T, int THREADS, int VECS, assay::Row ROW>
__global__ void
    __launch_bounds__(assay::threads_of_block<THREADS>, assay::blocks_of_held<T, THREADS, VECS>)
    log_softmax_held(T* y, const T* x, long long rows, long long n) {
  using A = assay::accumulator<T>;
  const bool vectors = assay::whole_vectors<T>(n, x, y);
  assay::for_held_row<T, THREADS, VECS, ROW>(rows, n, vectors, [=](auto row, auto whole, int n) {
    assay::Held<T, THREADS, VECS> held;
    held.load(x + row * n, n, whole, assay::from_float<T>(-INFINITY));
    assay::Apart<A> seen;
    seen.largest = assay::row_reduce<THREADS>(held.over(assay::Max{}), assay::Max{});
    const A by = seen.shift(seen.largest);
    held.each([&](A v, int, int) { seen.add(assay::exponential_for<T>(v - by)); });
    seen.ones = assay::row_reduce<THREADS>(seen.ones, assay::Sum{});
    seen.rest = assay::row_reduce<THREADS>(seen.rest, assay::Sum{});
    const A log = seen.log();
    // A row of nothing but -inf: -inf - 0 - log 0 is NaN, as in torch.
    held.change([&](A v, int, int) { return (v - by) - log; });
    held.store(y + row * n, n, whole);
  });
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    log_softmax_walked(T* y, const T* x, long long rows, long long n) {
  using A = assay::accumulator<T>;
  const T* const in[1] = {x + blockIdx.x * n};
  T* const to = y + blockIdx.x * n;
  assay::Apart<A> seen;
  assay::walk<BLOCK>(in, static_cast<const T*>(nullptr), n,
                     [&](auto& v, long long, auto) { seen.take(v[0]); });
  seen.template combine<BLOCK>();
  const A by = seen.shift(seen.largest), log = seen.log();
  assay::walk<BLOCK>(in, to, n, [&](auto& v, long long i, auto count) {
#pragma unroll
    for (int j = 0; j < count.value; ++j)
      v[0][j] = (v[0][j] - by) - log;
    assay::store(to + i, v[0]);
  });
}

template <typename T, int THREADS, int VECS, assay::Row ROW>
__global__ void
    __launch_bounds__(assay::threads_of_block<THREADS>, assay::blocks_of_held<T, THREADS, 2 * VECS>)
    log_softmax_grad_held(T* dx, const T* dy, const T* y, long long rows, long long n) {
  using A = assay::accumulator<T>;
  assay::differentiate_held<T, THREADS, VECS, ROW>(
      dx, dy, y, rows, n, [](A g, A) { return g; },
      [](A g, A log, A sum) { return g - assay::exponential_for<T>(log) * sum; });
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    log_softmax_grad_walked(T* dx, const T* dy, const T* y, long long rows, long long n) {
  using A = assay::accumulator<T>;
  const T* const grads[1] = {dy + blockIdx.x * n};
  const T* const in[2] = {grads[0], y + blockIdx.x * n};
  T* const to = dx + blockIdx.x * n;
  A sum = 0;
  assay::walk<BLOCK>(grads, static_cast<const T*>(nullptr), n,
                     [&](auto& v, long long, auto count) {
#pragma unroll
                       for (int j = 0; j < count.value; ++j) sum += v[0][j];
                     });
  sum = assay::block_reduce<BLOCK>(sum, assay::Sum{});
  assay::walk<BLOCK>(in, to, n, [&](auto& v, long long i, auto count) {
#pragma unroll
    for (int j = 0; j < count.value; ++j)
      v[0][j] -= assay::exponential_for<T>(v[1][j]) * sum;
    assay::store(to + i, v[0]);
  });
}
