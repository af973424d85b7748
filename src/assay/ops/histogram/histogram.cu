// y[b] = how many of x are b: counting by atomics.
//
// histogram_global      every thread adds 1 to the result itself: where many x are alike, their
//                       atomics wait for one another in the L2 cache.
// histogram_privatised  each block counts in shared memory, and adds its counters to the result at
//                       the end: one global atomic for a block and bin, not for an element.
//
// shapes  x: n ints in [0, bins); y: bins counters of 64 bits, 0 at first
// bytes   4 * n, and 8 * bins
// FLOPs   n integer additions
#include "assay.cuh"

extern "C" __global__ void histogram_global(unsigned long long* y, const int* x, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(y + x[i], 1ull);
}

extern "C" __global__ void __launch_bounds__(512)
    histogram_privatised(unsigned long long* y, const int* x, long long n, int bins) {
  extern __shared__ unsigned own[];  // a block sees fewer than 2^32 elements
  for (int b = threadIdx.x; b < bins; b += blockDim.x) own[b] = 0;
  __syncthreads();

  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long vectors = assay::aligned(x) ? n / 4 : 0;
  for (long long v = first; v < vectors; v += step) {
    const auto four = assay::load<4>(x + 4 * v);
#pragma unroll
    for (int j = 0; j < 4; ++j) atomicAdd(own + four[j], 1u);
  }
  for (long long i = 4 * vectors + first; i < n; i += step) atomicAdd(own + x[i], 1u);
  __syncthreads();

  for (int b = threadIdx.x; b < bins; b += blockDim.x)
    if (own[b]) atomicAdd(y + b, static_cast<unsigned long long>(own[b]));
}
