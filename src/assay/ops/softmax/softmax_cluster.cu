// y = softmax(x) over the last dimension, of long rows, read once and written once.
//
// softmax_cluster  the blocks of a cluster hold a row in their registers, a piece each. Each warp
//                  writes its largest and its sum into the shared memory of every block, once: so
//                  one barrier of the cluster is all that a row waits for.
//
// Few threads with many elements each do best: a thread's own sums are free of barriers. Below
// sm_90 there are no clusters: the first block of each row walks it alone, and the others end.
//
// shapes  x, y: (rows, n), contiguous, of one type: float, double, __half or __nv_bfloat16; each:
//         elements of a piece, whole vectors, THREADS * VECS of them at most; CLUSTER * each >= n
// bytes   2 * rows * n * sizeof(T)
// FLOPs   6 * rows * n counting exp as one (max, subtract, exp, add, two products)
#include "walked.cuh"

#if __CUDA_ARCH__ >= 900
#define CLUSTER_OF(blocks) __cluster_dims__(blocks, 1, 1)

namespace {

__device__ __forceinline__ void arrive_at_cluster() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
__device__ __forceinline__ void wait_for_cluster() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

// Writes into the same variable of another block of the cluster.
__device__ __forceinline__ unsigned there(const void* here, unsigned rank) {
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(here));
  unsigned at;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(place), "r"(rank));
  return at;
}
__device__ __forceinline__ void tell(float* here, unsigned rank, float v) {
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there(here, rank)), "f"(v) : "memory");
}
__device__ __forceinline__ void tell(double* here, unsigned rank, double v) {
  asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(there(here, rank)), "d"(v) : "memory");
}

}  // namespace
#else
#define CLUSTER_OF(blocks)
#endif

// A row by one block, element by element: so slow that it costs the kernel no registers.
template <typename T, int THREADS>
__device__ __forceinline__ void alone(T* y, const T* x, long long n) {
  using A = assay::accumulator<T>;
  assay::Online<A> seen;
#pragma unroll 1
  for (long long i = threadIdx.x; i < n; i += THREADS)
    seen.take(assay::Wide<T, 1>{assay::to_float(x[i])});
  seen.template combine<THREADS>();
  const A by = seen.shift(seen.largest), scale = A(1) / seen.sum;
#pragma unroll 1
  for (long long i = threadIdx.x; i < n; i += THREADS) {
    const A e = assay::exponential_of_difference<T>(assay::to_float(x[i]) - by);
    y[i] = assay::from_float<T>(e * scale);
  }
}

// WHOLE: rows are whole vectors.
template <typename T, int THREADS, int VECS, int CLUSTER, int TOGETHER, bool WHOLE>
__global__ void CLUSTER_OF(CLUSTER) __launch_bounds__(THREADS, TOGETHER)
    softmax_cluster(T* y, const T* x, long long n, int each) {
  const long long row = blockIdx.x / CLUSTER;
  const int rank = blockIdx.x % CLUSTER;
  x += row * n;
  y += row * n;
#if __CUDA_ARCH__ < 900
  if (rank == 0) softmax_walk<T, THREADS>(y, x, n);
#else
  if (WHOLE && (assay::misaligned(x) | assay::misaligned(y))) {  // a view that starts elsewhere
    if (rank == 0) alone<T, THREADS>(y, x, n);
    return;
  }
  using A = assay::accumulator<T>;
  constexpr int WARPS = THREADS / 32, ALL = CLUSTER * WARPS, OWN = (ALL + 31) / 32;
  __shared__ A largest[ALL], sums[ALL];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long begin = static_cast<long long>(rank) * each;
  const int length = int(begin >= n ? 0 : n - begin < each ? n - begin : each);
  x += begin;
  y += begin;

  assay::Held<T, THREADS, VECS> held;
  held.load(x, length, WHOLE, assay::from_float<T>(-INFINITY));
  arrive_at_cluster();
  const A top = assay::warp_reduce(held.over(assay::Max{}), assay::Max{});
  // Where all is -inf: exp(-inf - 0) is 0 each, and 0 / 0 the NaN that torch gives too.
  const A by = assay::Online<A>::shift(top);
  held.change([&](A v, int, int) { return assay::exponential_of_difference<T>(v - by); });
  const A sum = assay::warp_reduce(held.over(assay::Sum{}), assay::Sum{});

  wait_for_cluster();  // all of its blocks have begun, so that their memory is theirs
  if (lane < CLUSTER) {
    tell(largest + rank * WARPS + warp, lane, top);
    tell(sums + rank * WARPS + warp, lane, sum);
  }
  arrive_at_cluster();
  wait_for_cluster();
  A tops[OWN], all = -INFINITY, total = 0;
#pragma unroll
  for (int i = 0; i < OWN; ++i) {
    const int w = i * 32 + lane;
    tops[i] = w < ALL ? largest[w] : A(-INFINITY);
    all = assay::maximum(all, tops[i]);
  }
  const A to = assay::Online<A>::shift(assay::warp_reduce(all, assay::Max{}));
#pragma unroll
  for (int i = 0; i < OWN; ++i) {
    const int w = i * 32 + lane;
    if (w < ALL) total += sums[w] * assay::exponential_of_difference<A>(tops[i] - to);
  }
  total = assay::warp_reduce(total, assay::Sum{});  // 1 <= total <= n for a finite row
  // A warp of nothing but -inf: its exps are 0, and exp(0 - to) could be inf.
  const A moved = top == -INFINITY ? A(0) : assay::exponential_of_difference<A>(by - to);
  const A scale = moved / total;
  held.change([&](A e, int, int) { return e * scale; });
  held.store(y, length, WHOLE);
#endif
}
