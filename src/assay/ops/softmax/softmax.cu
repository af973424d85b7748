// y = softmax(x) over the last dimension:
// y[r, i] = exp(x[r, i] - max_r) / sum_j exp(x[r, j] - max_r).
//
// softmax_online  one block a row, of any length: each thread keeps the largest value so far and
//                 the sum relative to it, so one walk finds both; a second walk writes y.
//
// shapes  x, y: (rows, n), contiguous, of one type: float, double, __half or __nv_bfloat16
// bytes   2 * rows * n * sizeof(T): the second walk finds a row in the L1 or L2 cache, unless the
//         rows in flight exceed those; then 3 * rows * n * sizeof(T)
// FLOPs   5 * rows * n counting exp as one (max, subtract, exp, add, divide); two exps are done
#include "assay.cuh"

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK) softmax_online(T* y, const T* x, long long n) {
  using A = assay::accumulator<T>;
  constexpr int N = assay::widest<T>;
  x += blockIdx.x * n;
  y += blockIdx.x * n;

  // A row of odd length starts anywhere. So: single elements up to the first 16-byte boundary, then
  // whole vectors, then single elements again.
  const long long boundary = (16 - assay::misaligned(x)) % 16 / int(sizeof(T));
  const long long head = boundary < n ? boundary : n;
  const long long tail = head + (n - head) / N * N;
  const long long start = head + threadIdx.x * N;
  constexpr int STEP = BLOCK * N;

  // What a thread has seen: max, and sum of exp(v - shift(max)). Where all was -inf there is no
  // shift: exp(-inf - 0) adds nothing, where exp(-inf + inf) would be NaN. A NaN never becomes the
  // max but always enters the sum, and so does inf - inf: both make the whole row NaN, as in torch.
  A max = -INFINITY, sum = 0;
  const auto shift = [](A m) { return m == -INFINITY ? A(0) : m; };
  const auto take = [&](const auto& v, auto count) {
    A larger = max;
#pragma unroll
    for (int j = 0; j < count.value; ++j) larger = assay::maximum(larger, assay::to_float(v[j]));
    const A by = shift(larger);
    sum *= assay::exponential(max - by);  // one rescaling for the whole vector
    max = larger;
#pragma unroll
    for (int j = 0; j < count.value; ++j) sum += assay::exponential(assay::to_float(v[j]) - by);
  };

  for (long long i = threadIdx.x; i < head; i += BLOCK) take(x + i, assay::Count<1>{});
  for (long long i = start; i < tail; i += STEP) take(assay::load<N>(x + i), assay::Count<N>{});
  for (long long i = tail + threadIdx.x; i < n; i += BLOCK) take(x + i, assay::Count<1>{});

  const A all = assay::block_reduce<BLOCK>(max, assay::Max{});
  const A by = shift(all);
  sum = assay::block_reduce<BLOCK>(sum * assay::exponential(max - by), assay::Sum{});
  const A scale = A(1) / sum;  // 1 <= sum <= n for a finite row, so this loses no range

  const auto result = [&](T v) {
    return assay::from_float<T>(assay::exponential(assay::to_float(v) - by) * scale);
  };
  // x and y may be off by different amounts; then y can't be written in vectors that x is read in.
  const bool vectors = assay::misaligned(x) == assay::misaligned(y);
  for (long long i = threadIdx.x; i < head; i += BLOCK) y[i] = result(x[i]);
  if (vectors) {
    for (long long i = start; i < tail; i += STEP) {
      auto v = assay::load<N>(x + i);
#pragma unroll
      for (int j = 0; j < N; ++j) v[j] = result(v[j]);
      assay::store(y + i, v);
    }
  }
  for (long long i = (vectors ? tail : head) + threadIdx.x; i < n; i += BLOCK) y[i] = result(x[i]);
}
