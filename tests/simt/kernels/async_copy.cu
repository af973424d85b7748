// Asynchronous copies to shared memory: cp.async by intrinsics, by inline PTX, by cuda::pipeline
// and by cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

// y = reversed blocks of 64 floats, each fetched by one copy, committed, waited for.
__global__ void copy_once(float* y, const float* x) {
  __shared__ float kept[64];
  __pipeline_memcpy_async(kept + threadIdx.x, x + blockIdx.x * 64 + threadIdx.x, 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = kept[63 - threadIdx.x];
}

// Sums over tiles of 256 floats, two buffers: the next tile flies while this one is added.
__global__ void double_buffer(float* y, const float4* x, int tiles) {
  __shared__ float4 buffer[2][64];
  const int t = threadIdx.x;
  float sum = 0;
  __pipeline_memcpy_async(&buffer[0][t], x + t, 16);
  __pipeline_commit();
#pragma unroll 1
  for (int k = 0; k < tiles; ++k) {
    if (k + 1 < tiles) __pipeline_memcpy_async(&buffer[(k + 1) & 1][t], x + (k + 1) * 64 + t, 16);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    const float4 v = buffer[k & 1][63 - t];
    sum += v.x - v.y + 2 * v.z - v.w;
    __syncthreads();
  }
  y[t] = sum;
}

__device__ void copy16(void* to, const void* from, bool inside) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
}

// A moving sum of three tiles in a ring of three stages, copies by inline PTX; beyond the end a
// copy of no bytes fills with zeros.
__global__ void ring_of_stages(float* y, const float* x, int n, int tiles) {
  __shared__ float ring[3][128];
  const int t = threadIdx.x;  // 32
  const auto fetch = [&](int k) {
    const int at = k * 128 + t * 4;
    copy16(&ring[k % 3][t * 4], x + (at + 3 < n ? at : 0), at + 3 < n);
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  fetch(0);
  fetch(1);
#pragma unroll 1
  for (int k = 0; k < tiles; ++k) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    fetch(k + 2);
    float sum = 0;
    for (int j = 0; j < 4; ++j) sum += ring[k % 3][(t + j * 37) % 128];
    y[k * 32 + t] = sum;
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// cuda::pipeline of one thread: two stages, each lane reads what it copied itself, then the block.
__global__ void thread_pipeline(int* y, const int* x, int tiles) {
  __shared__ int buffer[2][64];
  auto pipe = cuda::make_pipeline();
  const int t = threadIdx.x;
  pipe.producer_acquire();
  cuda::memcpy_async(&buffer[0][t], x + t, cuda::aligned_size_t<4>(4), pipe);
  pipe.producer_commit();
  int sum = 0;
#pragma unroll 1
  for (int k = 0; k < tiles; ++k) {
    if (k + 1 < tiles) {
      pipe.producer_acquire();
      cuda::memcpy_async(&buffer[(k + 1) & 1][t], x + (k + 1) * 64 + t, cuda::aligned_size_t<4>(4),
                         pipe);
      pipe.producer_commit();
      cuda::pipeline_consumer_wait_prior<1>(pipe);
    } else {
      cuda::pipeline_consumer_wait_prior<0>(pipe);
    }
    __syncthreads();
    sum += buffer[k & 1][63 - t] * (k + 1);
    __syncthreads();
    pipe.consumer_release();
  }
  y[t] = sum;
}

// cg::memcpy_async by a whole block: a row of any length, waited for by the group.
__global__ void group_copy(float* y, const float* x, int n) {
  extern __shared__ float row[];
  const auto block = cg::this_thread_block();
  cg::memcpy_async(block, row, x + blockIdx.x * n, sizeof(float) * n);
  cg::wait(block);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = row[n - 1 - i];
}

// C = A B with 16-byte copies of 16 x 16 tiles, two stages. Sizes are multiples of 16.
__global__ void matmul_async(float* c, const float* a, const float* b, int m, int n, int k) {
  __shared__ float as[2][16][16], bs[2][16][16];
  const int t = threadIdx.x, r = t / 4, q = t % 4 * 4;  // 64 threads
  const int row0 = blockIdx.y * 16, col0 = blockIdx.x * 16;
  const auto fetch = [&](int i, int stage) {
    __pipeline_memcpy_async(&as[stage][r][q], a + (row0 + r) * k + i + q, 16);
    __pipeline_memcpy_async(&bs[stage][r][q], b + (i + r) * n + col0 + q, 16);
    __pipeline_commit();
  };
  float4 sum = {0, 0, 0, 0};
  fetch(0, 0);
#pragma unroll 1
  for (int i = 0, stage = 0; i < k; i += 16, stage ^= 1) {
    __pipeline_wait_prior(0);
    __syncthreads();
    if (i + 16 < k) fetch(i + 16, stage ^ 1);
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      const float v = as[stage][r][j];
      const float4 w = *reinterpret_cast<const float4*>(&bs[stage][j][q]);
      sum.x += v * w.x;
      sum.y += v * w.y;
      sum.z += v * w.z;
      sum.w += v * w.w;
    }
  }
  *reinterpret_cast<float4*>(c + (row0 + r) * n + col0 + q) = sum;
}
