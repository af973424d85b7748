// y = softmax(x) over the last dimension, each row read once and written once.
//
// softmax_held    a row lies in the registers of a warp or a block: largest value, exps and their
//                 sum all come out of registers.
// softmax_walked  a longer row: one walk finds the largest and the sum (online), a second writes y.
// softmax_parts, softmax_write
//                 few long rows: a block finds largest and sum of a piece; then each puts the pieces
//                 of its row together, and writes its own.
//
// shapes  x, y: (rows, n), contiguous, of one type: float, double, __half or __nv_bfloat16
// bytes   2 * rows * n * sizeof(T); walked, the second reading finds the row in a cache, if it fits
// FLOPs   5 * rows * n counting exp as one (max, subtract, exp, add, divide)
#include "walked.cuh"

template <typename T, int THREADS, int VECS>
__global__ void __launch_bounds__(assay::threads_of_block<THREADS>)
    softmax_held(T* y, const T* x, long long rows, long long n) {
  using A = assay::accumulator<T>;
  constexpr int N = assay::widest<T>;
  const long long row = assay::own_row<THREADS>();
  if (row >= rows) return;
  const int count = int(n);
  const bool whole = assay::whole_vectors<T>(n, x, y);

  assay::Held<T, THREADS, VECS> held;
  held.load(x + row * n, count, whole, assay::from_float<T>(-INFINITY));
  A largest = -INFINITY;
  held.each([&](A v, int, int) { largest = assay::maximum(largest, v); });
  largest = assay::row_reduce<THREADS>(largest, assay::Max{});
  // Where all is -inf: exp(-inf - 0) is 0 each, and 0 / 0 the NaN that torch gives too.
  const A by = largest == -INFINITY ? A(0) : largest;

  A e[VECS][N], sum = 0;
  held.each([&](A v, int u, int j) { sum += e[u][j] = assay::exponential_for<T>(v - by); });
  sum = assay::row_reduce<THREADS>(sum, assay::Sum{});
  const A scale = A(1) / sum;  // 1 <= sum <= n for a finite row, so this loses no range
  held.change([&](A, int u, int j) { return e[u][j] * scale; });
  held.store(y + row * n, count, whole);
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    softmax_walked(T* y, const T* x, long long rows, long long n) {
  softmax_walk<T, BLOCK>(y + blockIdx.x * n, x + blockIdx.x * n, n);
}

// kept: (rows, parts, 2), the largest of a piece and the sum of exp(x - largest).
template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    softmax_parts(assay::accumulator<T>* kept, const T* x, long long n, int parts) {
  using A = assay::accumulator<T>;
  const assay::Piece own(n, parts);
  const T* const in[1] = {x + own.row * n + own.begin};
  assay::Online<A> seen;
  assay::walk<BLOCK>(in, static_cast<const T*>(nullptr), own.length,
                     [&](auto& v, long long, auto) { seen.take(v[0]); });
  seen.template combine<BLOCK>();
  if (threadIdx.x != 0) return;
  kept[2 * blockIdx.x] = seen.largest;
  kept[2 * blockIdx.x + 1] = seen.sum;
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    softmax_write(T* y, const assay::accumulator<T>* kept, const T* x, long long n, int parts) {
  using A = assay::accumulator<T>;
  const assay::Piece own(n, parts, true);
  kept += 2 * own.row * parts;
  A top = -INFINITY, sum = 0;
  for (int p = threadIdx.x; p < parts; p += BLOCK) top = assay::maximum(top, kept[2 * p]);
  top = assay::block_reduce<BLOCK>(top, assay::Max{});
  const A by = assay::Online<A>::shift(top);
  for (int p = threadIdx.x; p < parts; p += BLOCK)
    sum += kept[2 * p + 1] * assay::exponential(kept[2 * p] - by);
  const A scale = A(1) / assay::block_reduce<BLOCK>(sum, assay::Sum{});

  const T* const in[1] = {x + own.row * n + own.begin};
  T* const to = y + own.row * n + own.begin;
  assay::walk<BLOCK>(in, to, own.length, [&](auto& v, long long i, auto count) {
#pragma unroll
    for (int j = 0; j < count.value; ++j)
      v[0][j] = assay::from_float<T>(assay::exponential_for<T>(assay::to_float(v[0][j]) - by) *
                                     scale);
    assay::store(to + i, v[0]);
  });
}
