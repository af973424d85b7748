// y = softmax(x) over the last dimension: blocks stay for many rows, the next one on its way.
//
// softmax_streamed  a row lies in the registers of a block, as in softmax_held.cu; while it is worked
//                   on and written, the next is copied to shared memory.
//
// shapes  x, y: (rows, n), contiguous, of one type: float, double, __half or __nv_bfloat16
// bytes   2 * rows * n * sizeof(T)
// FLOPs   5 * rows * n counting exp as one (max, subtract, exp, add, divide)
#include "streamed.cuh"

template <typename T, int THREADS, int VECS>
__global__ void __launch_bounds__(THREADS, assay::blocks_of_streamed<THREADS>)
    softmax_streamed(T* y, const T* x, long long rows, long long n) {
  using A = assay::accumulator<T>;
  const bool whole = assay::whole_vectors<T>(n, x, y);
  const T fill = assay::from_float<T>(-INFINITY);
  assay::for_rows<T, THREADS, VECS>(x, rows, n, whole, fill, [&](auto& held, long long row) {
    const A largest = assay::block_reduce<THREADS>(held.over(assay::Max{}), assay::Max{});
    // Where all is -inf: exp(-inf - 0) is 0 each, and 0 / 0 the NaN that torch gives too.
    const A by = assay::Online<A>::shift(largest);

    held.change([&](A v, int, int) { return assay::exponential_of_difference<T>(v - by); });
    const A sum = assay::block_reduce<THREADS>(held.over(assay::Sum{}), assay::Sum{});
    const A scale = A(1) / sum;
    held.change([&](A e, int, int) { return e * scale; });
    held.store(y + row * n, int(n), whole);
  });
}
