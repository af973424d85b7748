// A row of any length by one block: one walk finds the largest and the sum, a second writes y.
//
// shapes  from, to: n elements, contiguous, of one type
// bytes   2 * n * sizeof(T); the second walk finds the row in a cache, if it fits
// FLOPs   5 * n counting exp as one (max, subtract, exp, add, divide); two exps are done
#pragma once

#include "rows.cuh"

template <typename T, int BLOCK>
__device__ __forceinline__ void softmax_walk(T* to, const T* from, long long n) {
  using A = assay::accumulator<T>;
  const T* const in[1] = {from};
  assay::Online<A> seen;
  assay::walk<BLOCK>(in, static_cast<const T*>(nullptr), n,
                     [&](auto& v, long long, auto) { seen.take(v[0]); });
  seen.template combine<BLOCK>();
  const A by = seen.shift(seen.largest), scale = A(1) / seen.sum;
  assay::walk<BLOCK>(in, to, n, [&](auto& v, long long i, auto count) {
#pragma unroll
    for (int j = 0; j < count.value; ++j)
      v[0][j] = assay::exponential_of_difference<T>(v[0][j] - by) * scale;
    assay::store(to + i, v[0]);
  });
}
