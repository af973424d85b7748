// y = softmax(x) over the last dimension, of rows that no block can hold, read once all the same.
//
// softmax_joined  each block keeps a piece of a row in registers and tells largest and sum to the
//                 others of its row; once all have, it writes its piece. Nothing is read twice.
//
// Pieces are drawn as tickets, so that whoever waits waits for blocks that run, or that will take
// the places of rows before, whose blocks wait for nothing more. So a row may have no more pieces
// than blocks fit the GPU at once; the launcher allows an eighth of that, for other streams to use
// it too.
//
// shapes  x, y: (rows, n), contiguous, of one type: float, __half or __nv_bfloat16
//         kept: (rows, parts, 2); drawn: rows + 1 zeros, of which the last counts tickets
// bytes   2 * rows * n * sizeof(T)
// FLOPs   6 * rows * n counting exp as one (max, subtract, exp, add, two products)
#include "rows.cuh"

// Waits until *count is `all`, and sees what those that counted had written before.
__device__ __forceinline__ void await(const unsigned* count, unsigned all) {
  unsigned now;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(count) : "memory");
  } while (now < all);
}

template <typename T, int THREADS, int VECS>
__global__ void __launch_bounds__(THREADS, 1024 / THREADS)
    softmax_joined(T* y, volatile assay::accumulator<T>* kept, unsigned* drawn, const T* x,
                   long long rows, long long n, int parts) {
  using A = assay::accumulator<T>;
  constexpr int N = assay::widest<T>, SIZE = THREADS * VECS * N;
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) ticket = atomicAdd(drawn + rows, 1u);
  __syncthreads();
  const long long row = ticket / parts, begin = static_cast<long long>(ticket % parts) * SIZE;
  const int count = int(n - begin < SIZE ? n - begin : SIZE);
  const bool whole = assay::whole_vectors<T>(n, x, y);

  assay::Held<T, THREADS, VECS> held;
  held.load(x + row * n + begin, count, whole, assay::from_float<T>(-INFINITY));
  const A largest = assay::block_reduce<THREADS>(held.over(assay::Max{}), assay::Max{});
  const A by = assay::Online<A>::shift(largest);
  held.change([&](A v, int, int) { return assay::exponential_of_difference<T>(v - by); });
  const A sum = assay::block_reduce<THREADS>(held.over(assay::Sum{}), assay::Sum{});

  if (threadIdx.x == 0) {
    kept[2 * static_cast<long long>(ticket)] = largest;
    kept[2 * static_cast<long long>(ticket) + 1] = sum;
    __threadfence();
    atomicAdd(drawn + row, 1u);
    await(drawn + row, parts);
  }
  __syncthreads();

  const volatile A* const all = kept + 2 * row * parts;
  A top = -INFINITY, total = 0;
  for (int p = threadIdx.x; p < parts; p += THREADS) top = assay::maximum(top, A(all[2 * p]));
  top = assay::block_reduce<THREADS>(top, assay::Max{});
  const A to = assay::Online<A>::shift(top);
  for (int p = threadIdx.x; p < parts; p += THREADS)
    total += all[2 * p + 1] * assay::exponential_of_difference<A>(all[2 * p] - to);
  total = assay::block_reduce<THREADS>(total, assay::Sum{});
  // A piece of nothing but -inf: its exps are 0, and exp(0 - to) could be inf.
  const A moved = largest == -INFINITY ? A(0) : assay::exponential_of_difference<A>(by - to);
  const A scale = A(1) / total;  // 1 <= total <= n for a finite row
  held.change([&](A e, int, int) { return e * moved * scale; });
  held.store(y + row * n + begin, count, whole);
}
