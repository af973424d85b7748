// y = softmax(x) over the last dimension, of long rows, read once and written once.
//
// softmax_cluster  the blocks of a cluster hold a row in their shared memory, a piece each. Bulk
//                  copies bring all of it at once; each vector enters largest and sum as it comes.
//                  Blocks then write those two numbers into one another's shared memory.
//
// Below sm_90 there are no clusters: the first block of each row walks it alone, and the others end.
//
// shapes  x, y: (rows, n), contiguous, of one type: float, double, __half or __nv_bfloat16; each:
//         elements of a piece, a multiple of 128 bytes, CLUSTER * each >= n
// bytes   2 * rows * n * sizeof(T)
// FLOPs   6 * rows * n counting exp as one (max, two exps, subtract, add, product)
#include "walked.cuh"

#if __CUDA_ARCH__ >= 900
#define CLUSTER_OF(blocks) __cluster_dims__(blocks, 1, 1)

namespace {

__device__ __forceinline__ unsigned place(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void arrive_at_cluster() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
__device__ __forceinline__ void wait_for_cluster() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

// Brings `bytes`, a multiple of 16, to shared memory; `arrived` then ends its first phase.
__device__ __forceinline__ void bring(void* to, const void* from, unsigned bytes,
                                      unsigned long long* arrived) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(place(arrived)),
               "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(place(to)),
      "l"(from), "r"(bytes), "r"(place(arrived))
      : "memory");
}
__device__ __forceinline__ void await(unsigned long long* arrived) {
  unsigned done;
  do {
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(place(arrived))
        : "memory");
  } while (!done);
}

// Writes into the same variable of another block of the cluster.
__device__ __forceinline__ void tell(float* there, unsigned rank, float v) {
  unsigned at;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(place(there)), "r"(rank));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(at), "f"(v) : "memory");
}
__device__ __forceinline__ void tell(double* there, unsigned rank, double v) {
  unsigned at;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(place(there)), "r"(rank));
  asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(at), "d"(v) : "memory");
}

}  // namespace
#else
#define CLUSTER_OF(blocks)
#endif

template <typename T, int THREADS, int CLUSTER>
__global__ void CLUSTER_OF(CLUSTER) __launch_bounds__(THREADS)
    softmax_cluster(T* y, const T* x, long long n, int each) {
  const long long row = blockIdx.x / CLUSTER;
  const int rank = blockIdx.x % CLUSTER;
  x += row * n;
  y += row * n;
#if __CUDA_ARCH__ < 900
  if (rank == 0) softmax_walk<T, THREADS>(y, x, n);
#else
  using A = assay::accumulator<T>;
  constexpr int N = assay::widest<T>, STEP = THREADS * N, CHUNKS = 64;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ __align__(8) unsigned long long arrived[CHUNKS];
  __shared__ A largest[CLUSTER], sums[CLUSTER];
  T* const held = reinterpret_cast<T*>(memory);
  const long long begin = static_cast<long long>(rank) * each;
  const int length = int(begin >= n ? 0 : n - begin < each ? n - begin : each);
  x += begin;
  y += begin;

  const bool bulk = assay::aligned(x) && length % N == 0;
  if (bulk) {
    if (threadIdx.x == 0) {
      for (int c = 0; c * STEP < length; ++c)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(place(arrived + c)) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      for (int c = 0; c * STEP < length; ++c) {
        const int left = length - c * STEP;
        bring(held + c * STEP, x + c * STEP, (left < STEP ? left : STEP) * sizeof(T), arrived + c);
      }
    }
  } else {
    for (int i = threadIdx.x; i < length; i += THREADS) held[i] = x[i];
  }
  __syncthreads();
  arrive_at_cluster();

  assay::Online<A> seen;
  // f(i, Count<M>, chunk): M elements from i on, a vector of this thread or, at the end, single ones.
  const auto pieces = [&](auto f) {
    int chunk = 0, i = threadIdx.x * N;
    for (; i + N <= length; i += STEP, ++chunk) f(i, assay::Count<N>{}, chunk);
    for (int j = i; j < length && j < i + N; ++j) f(j, assay::Count<1>{}, chunk);
  };
  pieces([&](int i, auto count, int chunk) {
    if (bulk) await(arrived + chunk);
    seen.take(assay::load<count.value>(held + i));
  });
  seen.template combine<THREADS>();

  wait_for_cluster();  // all of its blocks have begun, so that their memory is theirs
  if (threadIdx.x < CLUSTER) {
    tell(largest + rank, threadIdx.x, seen.largest);
    tell(sums + rank, threadIdx.x, seen.sum);
  }
  arrive_at_cluster();
  wait_for_cluster();
  A top = -INFINITY, total = 0;
#pragma unroll
  for (int r = 0; r < CLUSTER; ++r) top = assay::maximum(top, largest[r]);
  const A by = seen.shift(top);
#pragma unroll
  for (int r = 0; r < CLUSTER; ++r) total += sums[r] * assay::exponential(largest[r] - by);
  const A scale = A(1) / total;  // 1 <= total <= n for a finite row

  const bool vectors = assay::aligned(y);
  pieces([&](int i, auto count, int) {
    auto v = assay::load<count.value>(held + i);
#pragma unroll
    for (int j = 0; j < count.value; ++j)
      v[j] = assay::from_float<T>(assay::exponential_for<T>(assay::to_float(v[j]) - by) * scale);
    if (vectors) {
      assay::store(y + i, v);
    } else {
#pragma unroll
      for (int j = 0; j < count.value; ++j) y[i + j] = v[j];
    }
  });
#endif
}
