// y = softmax(x) over the last dimension, of long rows, read once and written once.
//
// softmax_cluster  the blocks of a cluster hold a row in their registers, a piece each. Each warp
//                  sends its largest and its sum to every block, once, and each block waits for
//                  what all warps send it: no barrier of the cluster lies between reading and
//                  writing, which would wait for all that was stored before too.
//
// A row stays in registers as it was loaded, and exps are taken twice: of 2 bytes an element that
// is half the registers. Few threads with many elements each do best: a thread's own sums wait for
// nobody. Below sm_90 there are no clusters: the first block of each row walks it alone, and the
// others end.
//
// shapes  x, y: (rows, n), contiguous, of one type: float, __half or __nv_bfloat16; each: elements
//         of a piece, whole vectors, THREADS * VECS of them at most; CLUSTER * each >= n
// bytes   2 * rows * n * sizeof(T)
// FLOPs   9 * rows * n counting exp as one (max, two of subtract, product and exp, add, product)
#include "registers.cuh"
#include "walked.cuh"

#if __CUDA_ARCH__ >= 900
#define CLUSTER_OF(blocks) __cluster_dims__(blocks, 1, 1)

namespace {

using assay::Raw;

// ---- messages between the blocks of a cluster -------------------------------------------------

__device__ __forceinline__ unsigned here(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
// The same variable in another block of the cluster.
__device__ __forceinline__ unsigned there(const void* p, unsigned rank) {
  unsigned at;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(here(p)), "r"(rank));
  return at;
}

// A barrier in shared memory that opens once, when `bytes` have come from anywhere in the cluster.
// By one thread, which shows it to the cluster by arriving at the cluster's barrier.
__device__ __forceinline__ void expect(unsigned long long* barrier, int bytes) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(here(barrier)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(here(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void await(const unsigned long long* barrier) {
  asm volatile(
      "{\n"
      ".reg .pred open;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 open, [%0], 0;\n"
      "@!open bra again;\n"
      "}" ::"r"(here(barrier))
      : "memory");
}
// Stores a pair in another block, and tells that block's barrier of its bytes.
__device__ __forceinline__ void send(const float2* to, const unsigned long long* barrier,
                                     unsigned rank, float first, float second) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::
          "r"(there(to, rank)),
      "f"(first), "f"(second), "r"(there(barrier, rank))
      : "memory");
}

// ---- a row as it was loaded --------------------------------------------------------------------

__device__ __forceinline__ unsigned larger(unsigned a, unsigned b, float) {
  return __float_as_uint(assay::maximum(__uint_as_float(a), __uint_as_float(b)));
}
__device__ __forceinline__ unsigned larger(unsigned a, unsigned b, __half) {
  asm("max.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
  return a;
}
__device__ __forceinline__ unsigned larger(unsigned a, unsigned b, __nv_bfloat16) {
  asm("max.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
  return a;
}
__device__ __forceinline__ float larger_half(unsigned word, float) { return __uint_as_float(word); }
template <typename T>
__device__ __forceinline__ float larger_half(unsigned word, T) {
  const float2 pair = assay::pair_of(word, T());
  return assay::maximum(pair.x, pair.y);
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
  constexpr int N = assay::widest<T>;
  constexpr int WARPS = THREADS / 32, ALL = CLUSTER * WARPS, OWN = (ALL + 31) / 32;
  using Held = assay::Held<T, THREADS, VECS>;
  __shared__ float2 pairs[ALL];  // the largest of each warp, and its sum of exp(x - largest)
  __shared__ unsigned long long barrier;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long begin = static_cast<long long>(rank) * each;
  const int length = int(begin >= n ? 0 : n - begin < each ? n - begin : each);
  x += begin;
  y += begin;
  if (threadIdx.x == 0) expect(&barrier, sizeof(pairs));

  const T lowest = assay::from_float<T>(-INFINITY);
  Raw raw[VECS];
  if constexpr (WHOLE) {
    Held::fetch(raw, x, length, lowest);
  } else {
#pragma unroll
    for (int u = 0; u < VECS; ++u) {
      assay::Vec<T, N> v;
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const int i = Held::index(false, u, j);
        v[j] = i < length ? x[i] : lowest;
      }
      memcpy(&raw[u], &v, sizeof(v));
    }
  }
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");

  Raw most = raw[0];
#pragma unroll
  for (int u = 1; u < VECS; ++u)
#pragma unroll
    for (int w = 0; w < 4; ++w) most[w] = larger(most[w], raw[u][w], T());
  const unsigned word =
      larger(larger(most[0], most[1], T()), larger(most[2], most[3], T()), T());
  const float top = assay::warp_reduce(larger_half(word, T()), assay::Max{});
  // Where all is -inf: exp(-inf - 0) is 0 each, and 0 / 0 the NaN that torch gives too.
  const float by = assay::Online<float>::shift(top);
  float part[4] = {};
#pragma unroll
  for (int u = 0; u < VECS; ++u) {
    assay::widen_anew<T>(raw[u]);
    const auto v = assay::widen<T>(raw[u]);
#pragma unroll
    for (int j = 0; j < N; ++j) part[j % 4] += assay::exponential_of_difference<T>(v[j] - by);
  }
  const float sum = assay::warp_reduce((part[0] + part[1]) + (part[2] + part[3]), assay::Sum{});

  // All blocks of the cluster have begun, so that their memory is theirs and their barrier stands.
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
  if (lane < CLUSTER) send(pairs + rank * WARPS + warp, &barrier, lane, top, sum);
  await(&barrier);  // and so no block ends before all that is sent to it has come
  float tops[OWN], all = -INFINITY, total = 0;
#pragma unroll
  for (int i = 0; i < OWN; ++i) {
    const int w = i * 32 + lane;
    tops[i] = w < ALL ? pairs[w].x : -INFINITY;
    all = assay::maximum(all, tops[i]);
  }
  const float to = assay::Online<float>::shift(assay::warp_reduce(all, assay::Max{}));
#pragma unroll
  for (int i = 0; i < OWN; ++i) {
    const int w = i * 32 + lane;
    if (w < ALL) total += pairs[w].y * assay::exponential_of_difference<float>(tops[i] - to);
  }
  total = assay::warp_reduce(total, assay::Sum{});  // 1 <= total <= n for a finite row
  const float scale = 1 / total;
#pragma unroll
  for (int u = 0; u < VECS; ++u) {
    assay::widen_anew<T>(raw[u]);
    auto v = assay::widen<T>(raw[u]);
#pragma unroll
    for (int j = 0; j < N; ++j) v[j] = assay::exponential_of_difference<T>(v[j] - to) * scale;
    if constexpr (WHOLE) {
      const int i = Held::index(true, u, 0);
      if (i < length) assay::store(y + i, v);
    } else {
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const int i = Held::index(false, u, j);
        if (i < length) y[i] = assay::from_float<T>(v[j]);
      }
    }
  }
#endif
}
