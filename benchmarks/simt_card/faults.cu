// Planted faults. Each kernel comes twice: RIGHT = 0 with its fault, RIGHT = 1 without.
#include <cuda_pipeline.h>

// y[i] = 1 up to the end of the grid, not of y.
template <bool RIGHT>
__global__ void store_beyond(float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (RIGHT ? i < n : true) y[i] = 1;
}

// y[i] = x[i + 1] also for the last i.
template <bool RIGHT>
__global__ void load_beyond(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[RIGHT ? i : i + 1];
}

// y[i] = x[i - 1] also for i = 0.
template <bool RIGHT>
__global__ void load_before(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[RIGHT && i == 0 ? 0 : i - 1];
}

// x has 128 elements, as many as fit before the next allocation: x[i + 128] is in that one.
template <bool RIGHT>
__global__ void store_to_neighbour(float* x, float* next) {
  x[threadIdx.x + (RIGHT ? 0 : 128)] = next[threadIdx.x] + 1;
}

// Eight bytes at an address that is a multiple of four.
template <bool RIGHT>
__global__ void misaligned_load(float2* y, const float* x) {
  y[threadIdx.x] = *reinterpret_cast<const float2*>(x + 2 * threadIdx.x + (RIGHT ? 2 : 1));
}

// A pointer that is null.
template <bool RIGHT>
__global__ void null_store(float* y, float* nothing) {
  (RIGHT ? y : nothing)[threadIdx.x] = 1;
}

// The last four elements of x are nobody's.
template <bool RIGHT>
__global__ void unwritten_global(float* y, float* x) {
  if (RIGHT || threadIdx.x < 60) x[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = x[63 - threadIdx.x];
}

// The last four words of shared memory are nobody's.
template <bool RIGHT>
__global__ void unwritten_shared(float* y) {
  __shared__ float s[64];
  if (RIGHT || threadIdx.x < 60) s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];
}

// One element past what was asked for.
template <bool RIGHT>
__global__ void shared_beyond(float* y) {
  extern __shared__ float pool[];
  pool[threadIdx.x + (RIGHT ? 0 : 1)] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = pool[threadIdx.x ? threadIdx.x : 1];
}

// No barrier between a write and a read by another warp.
template <bool RIGHT>
__global__ void race_no_barrier(float* y) {
  __shared__ float s[64];
  s[threadIdx.x] = threadIdx.x;
  if (RIGHT) __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];
}

// No barrier between a read and the next round's write.
template <bool RIGHT>
__global__ void race_in_loop(float* y, int rounds) {
  __shared__ float s[64];
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) {
    s[threadIdx.x] = threadIdx.x + k;
    __syncthreads();
    sum += s[63 - threadIdx.x];
    if (RIGHT) __syncthreads();
  }
  y[threadIdx.x] = sum;
}

// No __syncwarp between lanes of one warp.
template <bool RIGHT>
__global__ void race_in_warp(float* y) {
  __shared__ float s[32];
  s[threadIdx.x] = threadIdx.x;
  if (RIGHT) __syncwarp();
  y[threadIdx.x] = s[31 - threadIdx.x];
}

// All threads write their own number to one word.
template <bool RIGHT>
__global__ void race_of_stores(int* y) {
  __shared__ int s;
  if (!RIGHT || threadIdx.x == 0) s = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = s;
}

// A plain write to what others add to.
template <bool RIGHT>
__global__ void race_with_atomics(int* y) {
  __shared__ int s;
  if (threadIdx.x == 40) s = 0;
  if (RIGHT) __syncthreads();
  atomicAdd(&s, 1);
  __syncthreads();
  y[threadIdx.x] = s;
}

// A copy to shared memory that nobody waits for.
template <bool RIGHT>
__global__ void copy_not_awaited(float* y, const float* x) {
  __shared__ float s[64];
  __pipeline_memcpy_async(s + threadIdx.x, x + threadIdx.x, 4);
  __pipeline_commit();
  if (RIGHT) __pipeline_wait_prior(0);
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];
}

// A barrier that half a warp comes to.
template <bool RIGHT>
__global__ void divergent_barrier(float* y) {
  __shared__ float s[64];
  s[threadIdx.x] = threadIdx.x;
  if (RIGHT || threadIdx.x < 48) __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}

// Lanes wait for lanes that are not among those the mask names.
template <bool RIGHT>
__global__ void warp_barrier_of_others(float* y) {
  if (threadIdx.x < 16) __syncwarp(RIGHT ? 0xffff : 0x00ff);
  y[threadIdx.x] = threadIdx.x;
}

// A value from a lane that takes no part.
template <bool RIGHT>
__global__ void shuffle_from_absent(int* y) {
  int v = threadIdx.x;
  if (threadIdx.x < 16) v = __shfl_sync(0xffff, v, RIGHT ? 15 - threadIdx.x : 20);
  y[threadIdx.x] = v;
}

// Threads of one block pass values through global memory without a barrier.
template <bool RIGHT>
__global__ void global_race_in_block(float* y, float* x) {
  x[threadIdx.x] = threadIdx.x;
  if (RIGHT) __syncthreads();
  y[threadIdx.x] = x[63 - threadIdx.x];
}

// Blocks add to one element without atomics.
template <bool RIGHT>
__global__ void global_race_of_blocks(float* sum) {
  if (threadIdx.x) return;
  if (RIGHT)
    atomicAdd(sum, 1.0f);
  else
    *sum += 1;
}
