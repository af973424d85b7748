// Histograms and other uses of atomics, in global and shared memory.
#include <cuda_fp16.h>
#include <cuda_bf16.h>

// count[x[i]] += 1, straight to global memory.
__global__ void histogram_global(int* count, const unsigned char* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(count + x[i], 1);
}

// Through a histogram of each block in shared memory, of 64 bins. n bytes + 256 a block.
__global__ void histogram_shared(unsigned* count, const unsigned char* x, int n) {
  __shared__ unsigned own[64];
  for (int k = threadIdx.x; k < 64; k += blockDim.x) own[k] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(own + (x[i] & 63), 1u);
  __syncthreads();
  for (int k = threadIdx.x; k < 64; k += blockDim.x)
    if (own[k]) atomicAdd(count + k, own[k]);
}

// A histogram of 16 bins a warp in dynamic shared memory, added up at the end.
__global__ void histogram_warps(unsigned* count, const unsigned char* x, int n) {
  extern __shared__ unsigned bins[];
  unsigned* own = bins + threadIdx.x / 32 * 16;
  if (threadIdx.x % 32 < 16) own[threadIdx.x % 32] = 0;
  __syncwarp();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(own + (x[i] & 15), 1u);
  __syncthreads();
  if (threadIdx.x < 16) {
    unsigned sum = 0;
    for (int w = 0; w < blockDim.x / 32; ++w) sum += bins[w * 16 + threadIdx.x];
    atomicAdd(count + threadIdx.x, sum);
  }
}

// One atomic for all lanes of a warp that hit the same bin: match.any finds them.
__global__ void histogram_matched(int* count, const unsigned char* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned same = __match_any_sync(__activemask(), x[i] & 7);
  if ((threadIdx.x & 31) == __ffs(same) - 1) atomicAdd(count + (x[i] & 7), __popc(same));
}

__device__ double atomic_max(double* to, double v) {
  unsigned long long* bits = reinterpret_cast<unsigned long long*>(to);
  unsigned long long old = *reinterpret_cast<volatile unsigned long long*>(bits);
  while (__longlong_as_double(old) < v) {
    const unsigned long long seen = atomicCAS(bits, old, __double_as_longlong(v));
    if (seen == old) break;
    old = seen;
  }
  return __longlong_as_double(old);
}

// most = max(x) of doubles by a loop of compare and swap, all lanes at one address.
__global__ void max_by_cas(double* most, const double* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomic_max(most, x[i]);
}

// Tickets: atomicInc wraps at 7, atomicDec at 4; the last values and how often each was drawn.
__global__ void tickets(unsigned* ring, unsigned* drawn) {
  const unsigned up = atomicInc(ring, 7), down = atomicDec(ring + 1, 4);
  atomicAdd(drawn + up, 1);
  atomicAdd(drawn + 8 + down, 1);
}

// and, or, xor, exch of words; min and max of 64 bits.
__global__ void bitwise_atomics(unsigned* word, long long* wide, const int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAnd(word, ~(1u << (x[i] & 15)));
  atomicOr(word + 1, 1u << (x[i] & 31));
  atomicXor(word + 2, 1u << (i & 31));
  if (atomicExch(word + 3, 5u) != 5u) atomicAdd(word + 4, 1u);
  atomicMin(wide, static_cast<long long>(x[i]) * 1000000007);
  atomicMax(wide + 1, static_cast<long long>(x[i]) * 1000000007);
  atomicAdd(reinterpret_cast<unsigned long long*>(wide + 2), static_cast<unsigned long long>(x[i]));
}

// Sums of whole numbers in float, double, half, half2 and bfloat16, exact in any order.
__global__ void float_atomics(float* f, double* d, __half2* h, __nv_bfloat162* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(f + (i & 3), static_cast<float>(i));
  atomicAdd(d + (i & 1), 0.25 * i);
  atomicAdd(h + (i & 1), __floats2half2_rn(1, 2));
  atomicAdd(reinterpret_cast<__half*>(h + 2) + (i & 1), __float2half(1));
  atomicAdd(b + (i & 3), __floats2bfloat162_rn(1, -1));
}

// A linked list for each of 8 buckets, built at once by all threads: head[b] <- i, next[i] <- old.
__global__ void linked_lists(int* head, int* next, const int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) next[i] = atomicExch(head + (x[i] & 7), i);
}

// Keys into an open hash table by compare and swap, the next slot where one is taken; tries = the
// longest search.
__global__ void hash_insert(int* table, int* tries, const int* keys, int n, int mask) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned slot = (keys[i] * 2654435761u) >> 20 & mask;
  int count = 1;
  while (true) {
    const int seen = atomicCAS(table + slot, -1, keys[i]);
    if (seen == -1 || seen == keys[i]) break;
    slot = (slot + 1) & mask;
    ++count;
  }
  atomicMax(tries, count);
}

// A counter of each block in shared memory gives every positive element a place: a queue.
__global__ void block_queue(int* queue, int* size, const int* x, int n) {
  __shared__ int count, base;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const bool mine = i < n && x[i] > 0;
  int at = 0;
  if (mine) at = atomicAdd(&count, 1);
  __syncthreads();
  if (threadIdx.x == 0) base = atomicAdd(size, count);
  __syncthreads();
  if (mine) queue[base + at] = x[i];
}
