// y = softmax(x) over the last dimension, each row read once and written once.
//
// softmax_held    a row lies in the registers of a warp or a block: largest value, exps and their
//                 sum all come out of registers.
// softmax_walked  a longer row: one walk finds the largest and the sum (online), a second writes y.
// softmax_parts, softmax_write
//                 few long rows: a block finds largest and sum of some tiles of a row; then each
//                 puts those of its row together, and writes its own.
//
// shapes  x, y: (rows, n), contiguous, of one type: float, double, __half or __nv_bfloat16
// bytes   2 * rows * n * sizeof(T); walked, the second reading finds the row in a cache, if it fits
// FLOPs   5 * rows * n counting exp as one (max, subtract, exp, add, divide)
#include "walked.cuh"

template <typename T, int THREADS, int VECS, assay::Row ROW>
__global__ void
    __launch_bounds__(assay::threads_of_block<THREADS>, assay::blocks_of_held<T, THREADS, VECS>)
    softmax_held(T* y, const T* x, long long rows, long long n) {
  using A = assay::accumulator<T>;
  const bool vectors = assay::whole_vectors<T>(n, x, y);
  assay::for_held_row<T, THREADS, VECS, ROW>(rows, n, vectors, [=](auto row, auto whole, int n) {
    assay::Held<T, THREADS, VECS> held;
    held.load(x + row * n, n, whole, assay::from_float<T>(-INFINITY));
    const A largest = assay::row_reduce<THREADS>(held.over(assay::Max{}), assay::Max{});
    // Where all is -inf: exp(-inf - 0) is 0 each, and 0 / 0 the NaN that torch gives too.
    const A by = largest == -INFINITY ? A(0) : largest;

    held.change([&](A v, int, int) { return assay::exponential_of_difference<T>(v - by); });
    const A sum = assay::row_reduce<THREADS>(held.over(assay::Sum{}), assay::Sum{});
    const A scale = assay::inverse_of(sum);  // 1 <= sum <= n for a finite row
    held.change([&](A e, int, int) { return e * scale; });
    held.store(y + row * n, n, whole);
  });
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    softmax_walked(T* y, const T* x, long long rows, long long n) {
  softmax_walk<T, BLOCK>(y + blockIdx.x * n, x + blockIdx.x * n, n);
}

// kept: (rows, parts, 2), the largest of a part and the sum of exp(x - largest).
template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    softmax_parts(assay::accumulator<T>* kept, const T* x, long long n, int parts) {
  using A = assay::accumulator<T>;
  assay::let_next_kernel_start();
  x += blockIdx.x / parts * n;
  assay::Online<A> seen;
  assay::for_tiles<BLOCK, T>(n, blockIdx.x % parts, parts, [&](long long begin, long long length) {
    const T* const in[1] = {x + begin};
    assay::walk<BLOCK>(in, static_cast<const T*>(nullptr), length,
                       [&](auto& v, long long, auto) { seen.take(v[0]); });
  });
  seen.template combine<BLOCK>();
  if (threadIdx.x != 0) return;
  kept[2 * blockIdx.x] = seen.largest;
  kept[2 * blockIdx.x + 1] = seen.sum;
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    softmax_write(T* y, const assay::accumulator<T>* kept, const T* x, long long n, int parts) {
  using A = assay::accumulator<T>;
  assay::await_previous_kernel();
  const long long row = blockIdx.x / parts;
  kept += 2 * row * parts;
  A top = -INFINITY, sum = 0;
  for (int p = threadIdx.x; p < parts; p += BLOCK) top = assay::maximum(top, kept[2 * p]);
  top = assay::block_reduce<BLOCK>(top, assay::Max{});
  const A by = assay::Online<A>::shift(top);
  for (int p = threadIdx.x; p < parts; p += BLOCK)
    sum += kept[2 * p + 1] * assay::exponential_of_difference<A>(kept[2 * p] - by);
  const A scale = A(1) / assay::block_reduce<BLOCK>(sum, assay::Sum{});

  const auto tile = [&](long long begin, long long length) {
    const T* const in[1] = {x + row * n + begin};
    T* const to = y + row * n + begin;
    assay::walk<BLOCK>(in, to, length, [&](auto& v, long long i, auto count) {
#pragma unroll
      for (int j = 0; j < count.value; ++j)
        v[0][j] = assay::exponential_of_difference<T>(v[0][j] - by) * scale;
      assay::store(to + i, v[0]);
    });
  };
  assay::for_tiles<BLOCK, T>(n, blockIdx.x % parts, parts, tile, true);
}
