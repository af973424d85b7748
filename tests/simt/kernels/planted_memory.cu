// Kernels with one planted fault each, of an address or of a value never written. RIGHT is set for
// the right twin. The line at fault says FAULT.

#include <cuda/std/cassert>

#ifndef RIGHT
#define RIGHT 0
#endif

// One element too many is written.
__global__ void store_beyond(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (RIGHT ? i < n : i <= n)
    y[i] = 2;  // FAULT
}

// The right neighbour of the last element is read.
__global__ void load_beyond(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int next = RIGHT && i + 1 == n ? i : i + 1;
  y[i] = x[next];  // FAULT
}

// The last 16-byte load covers the tail and what lies behind it.
__global__ void vector_tail(float* y, const float* x, int n) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i >= n || (RIGHT && i + 3 >= n)) return;
  const float4 v = *reinterpret_cast<const float4*>(x + i);  // FAULT
  for (int k = 0; k < 4; ++k)
    if (i + k < n) y[i + k] = k == 0 ? v.x : k == 1 ? v.y : k == 2 ? v.z : v.w;
}

// A bin that the histogram does not have.
__global__ void atomic_beyond(int* count, const int* x, int bins) {
  const int bin = x[threadIdx.x];
  if (!RIGHT || bin < bins)
    atomicAdd(count + bin, 1);  // FAULT
}

// The left neighbour of the first element.
__global__ void negative_index(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || (RIGHT && i == 0)) return;
  y[i] = x[i - 1];  // FAULT
}

// A row too far: the address lies in the tensor's neighbour of the same allocation arena.
__global__ void into_neighbour(float* y, const float* x, int rows, int columns) {
  const int r = blockIdx.x + (RIGHT ? 0 : 1);
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    y[blockIdx.x * columns + c] = x[r * columns + c];  // FAULT
}

// One word more than the launch gives dynamic shared memory.
__global__ void dynamic_beyond(float* y, const float* x) {
  extern __shared__ float kept[];
  kept[threadIdx.x + (RIGHT ? 0 : 1)] = x[threadIdx.x];  // FAULT
  __syncthreads();
  if (threadIdx.x) y[threadIdx.x] = kept[threadIdx.x];
}

// Behind all of a block's static shared memory.
__global__ void static_beyond(float* y, const float* x) {
  __shared__ float kept[64];
  kept[threadIdx.x * (RIGHT ? 1 : 2)] = x[threadIdx.x];  // FAULT
  __syncthreads();
  y[threadIdx.x] = threadIdx.x < 32 || RIGHT ? kept[threadIdx.x * (RIGHT ? 1 : 2)] : 0;
}

// A 16-byte load from an address that is a multiple of 4 only.
__global__ void misaligned_vector(float4* y, const float* x) {
  y[threadIdx.x] = *reinterpret_cast<const float4*>(x + threadIdx.x * 4 + (RIGHT ? 0 : 1));  // FAULT
}

// An 8-byte store to shared memory at an odd word.
__global__ void misaligned_shared(float* y, const float2* x) {
  __shared__ __align__(16) float kept[72];
  float* at = kept + threadIdx.x * 2 + (RIGHT ? 0 : 1);
  *reinterpret_cast<float2*>(at) = x[threadIdx.x];  // FAULT
  __syncwarp();
  y[threadIdx.x] = RIGHT ? at[0] + at[1] : 0;
}

// Scratch in global memory is added to before anything is written there.
__global__ void scratch_unwritten(float* y, float* scratch, const float* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (RIGHT) scratch[i] = 0;
  scratch[i] += x[i];  // FAULT
  y[i] = scratch[i];
}

// The tail of a tile in shared memory is never filled, and is added up.
__global__ void shared_tail(float* y, const float* x, int n) {
  __shared__ float tile[64];
  if (RIGHT || threadIdx.x < n) tile[threadIdx.x] = threadIdx.x < n ? x[threadIdx.x] : 0;
  __syncthreads();
  if (threadIdx.x < 32)
    y[threadIdx.x] = tile[threadIdx.x] + tile[threadIdx.x + 32];  // FAULT
}

// A pointer that is null in this launch, and that the kernel should have looked at.
__global__ void null_pointer(float* y, const float* x, const float* bias) {
  const int i = threadIdx.x;
  y[i] = x[i] + (RIGHT && !bias ? 0 : bias[i]);  // FAULT
}

// assert fails for one thread.
__global__ void asserted(float* y, const float* x) {
  assert(RIGHT || x[threadIdx.x] < 31);  // FAULT
  y[threadIdx.x] = x[threadIdx.x];
}

// The result of a copy that was begun is read, without a wait for it.
__global__ void no_wait(float* y, const float* x) {
  __shared__ float kept[32];
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(kept + threadIdx.x));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + threadIdx.x)
               : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  if (RIGHT) asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncwarp();
  y[threadIdx.x] = kept[31 - threadIdx.x];  // FAULT
  if (!RIGHT) asm volatile("cp.async.wait_all;" ::: "memory");
}

// Two copies fly; the wait leaves one of them, and it is the one that is read.
__global__ void wait_too_few(float* y, const float* x) {
  __shared__ float kept[2][32];
  for (int k = 0; k < 2; ++k) {
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&kept[k][threadIdx.x]));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + k * 32 + threadIdx.x)
                 : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncwarp();
  y[threadIdx.x] = kept[RIGHT ? 0 : 1][31 - threadIdx.x];  // FAULT
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// Shared memory is filled by hand while a copy to it is still in flight.
__global__ void reuse_in_flight(float* y, const float* x) {
  __shared__ float kept[32];
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(kept + threadIdx.x));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + threadIdx.x)
               : "memory");
  if (RIGHT) asm volatile("cp.async.wait_all;" ::: "memory");
  kept[threadIdx.x] = 1;  // FAULT
  if (!RIGHT) asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
  y[threadIdx.x] = kept[31 - threadIdx.x];
}

__constant__ float weights[4] = {1, 2, 3, 4};

// Behind a table in constant memory.
__global__ void constant_beyond(float* y, const int* index) {
  y[threadIdx.x] = weights[index[threadIdx.x] & (RIGHT ? 3 : 7)];  // FAULT
}

// Row by row with the columns of another matrix: a stride that is one too large.
__global__ void wrong_stride(float* y, const float* x, int rows, int columns) {
  const int c = threadIdx.x;
  if (c >= columns) return;
  float sum = 0;
  for (int r = 0; r < rows; ++r)
    sum += x[r * (columns + (RIGHT ? 0 : 1)) + c];  // FAULT
  y[c] = sum;
}
