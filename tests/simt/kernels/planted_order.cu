// Kernels with one planted fault each, of order: races, barriers that not all reach, waits that
// never end. RIGHT is set for the right twin. Lines at fault say FAULT: of a race, either party's.
#include <cuda/atomic>

#ifndef RIGHT
#define RIGHT 0
#endif

// Shared memory is read by other warps before a barrier.
__global__ void no_barrier_after_write(int* y, const int* x) {
  __shared__ int kept[128];
  kept[threadIdx.x] = x[threadIdx.x];  // FAULT
  if (RIGHT) __syncthreads();
  y[threadIdx.x] = kept[127 - threadIdx.x];  // FAULT
}

// Shared memory is written again while other warps may still read it.
__global__ void no_barrier_before_reuse(int* y, const int* x) {
  __shared__ int kept[64];
  kept[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const int v = kept[63 - threadIdx.x];  // FAULT
  if (RIGHT) __syncthreads();
  kept[threadIdx.x] = v + 1;  // FAULT
  __syncthreads();
  y[threadIdx.x] = kept[63 - threadIdx.x];
}

// The same from one turn of a loop to the next.
__global__ void no_barrier_in_loop(int* y, const int* x, int rounds) {
  __shared__ int kept[64];
  int sum = 0;
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
    kept[threadIdx.x] = x[r * 64 + threadIdx.x];  // FAULT
    __syncthreads();
    sum += kept[(threadIdx.x + 40) % 64];  // FAULT
    if (RIGHT) __syncthreads();
  }
  y[threadIdx.x] = sum;
}

// A tree whose last steps rely on the lanes of a warp going in step.
__global__ void no_syncwarp(int* y, const int* x) {
  __shared__ int tree[32];
  const int t = threadIdx.x;
  tree[t] = x[t];
  __syncwarp();
  if (t < 16) tree[t] += tree[t + 16];  // FAULT
  if (RIGHT) __syncwarp();
  if (t < 8) tree[t] += tree[t + 8];  // FAULT
  __syncwarp();
  if (t < 8) y[t] = tree[t];
}

// A warp barrier where a block's is needed.
__global__ void wrong_barrier(int* y, const int* x) {
  __shared__ int kept[64];
  kept[threadIdx.x] = x[threadIdx.x];  // FAULT
  if (RIGHT)
    __syncthreads();
  else
    __syncwarp();
  y[threadIdx.x] = kept[63 - threadIdx.x];  // FAULT
}

// The copy is waited for by each thread, but the others' copies are read.
__global__ void wait_without_barrier(float* y, const float* x) {
  __shared__ float kept[64];
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(kept + threadIdx.x));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"  // FAULT
               ::"r"(to), "l"(x + threadIdx.x) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  if (RIGHT) __syncthreads();
  y[threadIdx.x] = kept[63 - threadIdx.x];  // FAULT
}

// Every block writes its own number to one word.
__global__ void one_word(int* y) {
  if (threadIdx.x == 0)
    y[RIGHT ? blockIdx.x : 0] = blockIdx.x;  // FAULT
}

// Every thread writes the same value to one word, which is right; or its own.
__global__ void same_value(int* found, const int* x) {
  if (x[threadIdx.x] >= 0)
    found[0] = RIGHT ? 1 : threadIdx.x;  // FAULT
}

// Tiles of two blocks overlap by one column.
__global__ void overlapping_tiles(float* y, const float* x, int n) {
  const int i = blockIdx.x * (RIGHT ? 32 : 31) + threadIdx.x;
  if (i < n)
    y[i] = x[i] + blockIdx.x;  // FAULT
}

// A sum by a plain addition to memory of many threads.
__global__ void plain_increment(int* count, const int* x) {
  if (x[threadIdx.x] > 0) {
    if (RIGHT)
      atomicAdd(count, 1);
    else
      *count += 1;  // FAULT
  }
}

// Data and a flag for another block; without the fence the flag may be seen first.
__global__ void no_fence(int* y, int* data, int* flag) {
  if (threadIdx.x) return;
  if (blockIdx.x == 0) {
    *data = 42;  // FAULT
    if (RIGHT) __threadfence();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {
    }
    __threadfence();
    *y = *data;  // FAULT
  }
}

// A block reads what another one writes in the same launch, with nothing between.
__global__ void neighbour_block(int* y, const int* x) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  y[i] = x[i];  // FAULT
  if (!RIGHT && blockIdx.x == 1 && threadIdx.x == 0)
    y[i] += y[0];  // FAULT
}

// A barrier in a branch that half a warp takes, before others of its block.
__global__ void half_a_warp(int* y, const int* x) {
  __shared__ int kept[64];
  kept[threadIdx.x] = x[threadIdx.x];
  if (RIGHT || threadIdx.x < 16) {
    __syncthreads();  // FAULT
    y[threadIdx.x] = kept[threadIdx.x ^ 1];
  } else {
    __syncthreads();  // FAULT
    y[threadIdx.x] = 0;
  }
}

// A barrier in a loop that each thread leaves at another turn.
__global__ void divergent_loop(int* y, const int* x) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  const int turns = RIGHT ? 4 : 1 + x[threadIdx.x] % 4;
#pragma unroll 1
  for (int k = 0; k < turns; ++k) {
    atomicAdd(&total, 1);
    __syncthreads();  // FAULT
  }
  __syncthreads();  // FAULT
  y[threadIdx.x] = total;
}

// Warps wait at two different barriers of one number, in two branches.
__global__ void two_branches(int* y, const int* x) {
  __shared__ int kept[64];
  kept[threadIdx.x] = x[threadIdx.x];
  if (RIGHT || threadIdx.x < 32) {
    __syncthreads();  // FAULT
    y[threadIdx.x] = kept[63 - threadIdx.x];
  } else {
    __syncthreads();  // FAULT
    y[threadIdx.x] = -kept[63 - threadIdx.x];
  }
}

// A shuffle names all lanes, and half of them have left.
__global__ void lanes_left(int* y, const int* x) {
  const int lane = threadIdx.x;
  if (!RIGHT && lane >= 16) return;
  y[lane] = __shfl_xor_sync(0xffffffff, x[lane], 16);  // FAULT
}

// A shuffle reads a lane that its mask leaves out.
__global__ void lane_not_named(int* y, const int* x) {
  const int lane = threadIdx.x;
  if (lane >= 16) return;
  y[lane] = __shfl_sync(0x0000ffff, x[lane], RIGHT ? 3 : 20);  // FAULT
}

// Nobody sets the flag.
__global__ void flag_unset(int* y, int* flag) {
  if (blockIdx.x == 0 && RIGHT) atomicExch(flag, 1);
  if (blockIdx.x == 1) {
    while (atomicAdd(flag, 0) == 0) {  // FAULT
    }
    *y = 1;
  }
}

// The lock is taken and never given back.
__global__ void lock_kept(int* total, int* lock) {
  if (threadIdx.x) return;
  while (atomicCAS(lock, 0, 1) != 0) {  // FAULT
  }
  __threadfence();
  *total += 1;
  __threadfence();
  if (RIGHT) atomicExch(lock, 0);
}

// A named barrier of three warps that only two come to.
__global__ void too_few_warps(int* y) {
  if (threadIdx.x < 64) {
    if (RIGHT)
      asm volatile("bar.sync 1, 64;" ::: "memory");
    else
      asm volatile("bar.sync 1, 96;" ::: "memory");  // FAULT
  }
  y[threadIdx.x] = 1;
}

// Each of two warps holds one lock and wants the other's.
__global__ void embrace(int* y, int* locks, int* taken) {
  if (threadIdx.x % 32) return;
  const int own = threadIdx.x / 32, first = RIGHT ? 0 : own, second = 1 - first;
  while (atomicCAS(locks + first, 0, 1) != 0) {
  }
  if (!RIGHT) {
    atomicAdd(taken, 1);
    while (atomicAdd(taken, 0) < 2) {
    }
  }
  while (atomicCAS(locks + second, 0, 1) != 0) {  // FAULT
  }
  __threadfence();
  *y += 1;
  __threadfence();
  atomicExch(locks + second, 0);
  atomicExch(locks + first, 0);
}
