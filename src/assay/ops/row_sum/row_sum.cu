// y[r] = sum_j x[r, j], and the sum of all elements, in float (double for double).
//
// row_sum_thread   one thread a row: neighbouring threads read addresses a row apart, so that every
//                  32-byte sector is fetched for one element, if the caches lose it in between.
// row_sum_walked   one block a row, vectors of 16 bytes, then shuffles and shared memory.
// row_sum_held     all vectors of a row are on their way at once, to the registers of a warp or a block.
// sum_partial      each block adds every gridDim-th tile of all elements: fixed order.
// sum_of_partials  one block adds what those wrote.
// sum_atomic       each block adds its part to y by an atomic, in the order in which they end.
//
// shapes  x: (rows, n) or n elements; y: rows elements or one; partial: one a block
// bytes   rows * n * sizeof(T), and next to nothing for the results
// FLOPs   rows * n, a quarter of a FLOP a byte in float
#include "rows.cuh"

template <typename T>
__global__ void row_sum_thread(T* y, const T* x, long long rows, long long n) {
  const long long row = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  assay::accumulator<T> sum = 0;
  for (long long i = 0; i < n; ++i) sum += assay::to_float(x[row * n + i]);
  y[row] = assay::from_float<T>(sum);
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    row_sum_walked(T* y, const T* x, long long rows, long long n) {
  using A = assay::accumulator<T>;
  const T* const in[1] = {x + blockIdx.x * n};
  A sum = 0;
  assay::walk<BLOCK>(in, static_cast<const T*>(nullptr), n, [&](auto& v, long long, auto count) {
    A part = 0;
#pragma unroll
    for (int j = 0; j < count.value; ++j) part += v[0][j];
    sum += part;
  });
  sum = assay::block_reduce<BLOCK>(sum, assay::Sum{});
  if (threadIdx.x == 0) y[blockIdx.x] = assay::from_float<T>(sum);
}

template <typename T, int THREADS, int VECS, assay::Row ROW>
__global__ void
    __launch_bounds__(assay::threads_of_block<THREADS>, assay::blocks_of_held<T, THREADS, VECS>)
    row_sum_held(T* y, const T* x, long long rows, long long n) {
  using A = assay::accumulator<T>;
  const bool vectors = assay::whole_vectors<T>(n, x);
  assay::for_held_row<T, THREADS, VECS, ROW>(rows, n, vectors, [=](auto row, auto whole, int n) {
    assay::Held<T, THREADS, VECS> held;
    held.load(x + row * n, n, whole, assay::from_float<T>(0));
    const A sum = assay::row_reduce<THREADS>(held.over(assay::Sum{}), assay::Sum{});
    if (assay::own_lane<THREADS>() == 0) y[row] = assay::from_float<T>(sum);
  });
}

// The part of all threads of a block: UNROLL vectors are on their way before the first is added.
template <int BLOCK, int UNROLL, typename T>
__device__ __forceinline__ assay::accumulator<T> part(const T* x, long long n) {
  using A = assay::accumulator<T>;
  constexpr int N = assay::widest<T>;
  constexpr int TILE = BLOCK * UNROLL * N;
  A sum[UNROLL] = {};
  const bool vectors = assay::aligned(x);
  for (long long first = static_cast<long long>(blockIdx.x) * TILE; first < n;
       first += static_cast<long long>(gridDim.x) * TILE) {
    if (vectors && first + TILE <= n) {
      assay::Raw raw[UNROLL];
#pragma unroll
      for (int u = 0; u < UNROLL; ++u)
        raw[u] = assay::load_raw(x + first + (u * BLOCK + threadIdx.x) * N);
#pragma unroll
      for (int u = 0; u < UNROLL; ++u) {
        const auto v = assay::widen<T>(raw[u]);
#pragma unroll
        for (int j = 0; j < N; ++j) sum[u] += v[j];
      }
    } else {
      for (long long i = first + threadIdx.x; i < first + TILE && i < n; i += BLOCK)
        sum[0] += assay::to_float(x[i]);
    }
  }
  A all = sum[0];
#pragma unroll
  for (int u = 1; u < UNROLL; ++u) all += sum[u];
  return assay::block_reduce<BLOCK>(all, assay::Sum{});
}

template <typename T, int BLOCK, int UNROLL>
__global__ void __launch_bounds__(BLOCK)
    sum_partial(assay::accumulator<T>* partial, const T* x, long long n) {
  assay::let_next_kernel_start();
  const auto sum = part<BLOCK, UNROLL>(x, n);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    sum_of_partials(T* y, const assay::accumulator<T>* partial, int count) {
  assay::await_previous_kernel();
  assay::accumulator<T> sum = 0;
  for (int i = threadIdx.x; i < count; i += BLOCK) sum += partial[i];
  sum = assay::block_reduce<BLOCK>(sum, assay::Sum{});
  if (threadIdx.x == 0) *y = assay::from_float<T>(sum);
}

template <typename T, int BLOCK, int UNROLL>
__global__ void __launch_bounds__(BLOCK) sum_atomic(T* y, const T* x, long long n) {
  const auto sum = part<BLOCK, UNROLL>(x, n);
  if (threadIdx.x == 0) atomicAdd(y, sum);
}
