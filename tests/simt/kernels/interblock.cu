// Blocks, and lanes of one warp, that wait for one another through memory.
#include <cuda/atomic>

// total = sum of all blocks, each adding under a lock that one thread of it takes.
__global__ void locked_sum(int* lock, float* total, const float* x, int n) {
  __shared__ float tree[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  tree[threadIdx.x] = i < n ? x[i] : 0;
  for (int half = 32; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) tree[threadIdx.x] += tree[threadIdx.x + half];
  }
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    *total += tree[0];
    __threadfence();
    atomicExch(lock, 0);
  }
}

// total = sum: every block writes its part, the last to arrive adds the parts, in their order.
__global__ void last_block_sum(float* total, float* part, unsigned* arrived,
                               const float* x, int n) {
  __shared__ float tree[64];
  __shared__ bool last;
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  tree[t] = i < n ? x[i] : 0;
  for (int half = 32; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) tree[t] += tree[t + half];
  }
  if (t == 0) {
    part[blockIdx.x] = tree[0];
    __threadfence();
    last = atomicAdd(arrived, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t == 0) {
    __threadfence();
    float sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += part[b];
    *total = sum;
  }
}

// Inclusive prefix sums over blocks in one launch: each block publishes its sum, then looks back
// until a block that knows its prefix (decoupled look-back). state: 0 nothing, 1 sum, 2 prefix.
__global__ void look_back(int* y, int* state, int* sums, int* prefixes, int* ticket, const int* x,
                          int n) {
  __shared__ int kept[64], base, number;
  const int t = threadIdx.x;
  if (t == 0) number = atomicAdd(ticket, 1);
  __syncthreads();
  const int block = number, i = block * 64 + t;
  kept[t] = i < n ? x[i] : 0;
  __syncthreads();
#pragma unroll 1
  for (int step = 1; step < 64; step *= 2) {
    const int v = t >= step ? kept[t - step] : 0;
    __syncthreads();
    kept[t] += v;
    __syncthreads();
  }
  if (t == 0) {
    sums[block] = kept[63];
    __threadfence();
    atomicExch(state + block, 1);
    int before = 0;
    for (int b = block - 1; b >= 0;) {
      int seen;
      while ((seen = atomicAdd(state + b, 0)) == 0) {
      }
      __threadfence();
      if (seen == 2) {
        before += prefixes[b];
        break;
      }
      before += sums[b--];
    }
    prefixes[block] = before + kept[63];
    __threadfence();
    atomicExch(state + block, 2);
    base = before;
  }
  __syncthreads();
  if (i < n) y[i] = base + kept[t];
}

__device__ void grid_barrier(unsigned* count, volatile unsigned* sense) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned before = *sense;
    __threadfence();
    if (atomicAdd(count, 1) == gridDim.x - 1) {
      *count = 0;
      __threadfence();
      *sense = before + 1;
    } else {
      while (*sense == before) {
      }
    }
    __threadfence();
  }
  __syncthreads();
}

// Steps of a 1-D heat equation over two buffers, a barrier of the whole grid between them: all
// blocks have to be resident.
__global__ void heat_steps(float* a, float* b, unsigned* count, unsigned* sense, int n, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int s = 0; s < steps; ++s) {
    if (i < n) {
      const float left = i ? a[i - 1] : 0, right = i < n - 1 ? a[i + 1] : 0;
      b[i] = a[i] + 0.25f * (left - 2 * a[i] + right);
    }
    grid_barrier(count, sense);
    float* kept = a;
    a = b;
    b = kept;
  }
}

// A lock for which all lanes of a warp compete, each with its own turn by a flag.
__global__ void warp_lock(int* lock, int* total) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *static_cast<volatile int*>(total) += threadIdx.x;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

// The same as written for Volta and later: a bare spin by all lanes, in the path of all.
__global__ void warp_spin(int* lock, int* total) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  *static_cast<volatile int*>(total) += threadIdx.x + 1;
  __threadfence();
  atomicExch(lock, 0);
}

// Block 0 sends rows to block 1, and waits for each to be taken: flag, data, fences.
__global__ void mailbox(int* y, int* box, int* full, const int* x, int rows) {
  const int t = threadIdx.x;
  for (int r = 0; r < rows; ++r) {
    if (blockIdx.x == 0) {
      if (t == 0)
        while (atomicAdd(full, 0) != 0) {
        }
      __syncthreads();
      box[t] = x[r * 64 + t] * 3;
      __threadfence();
      __syncthreads();
      if (t == 0) atomicExch(full, 1);
    } else {
      if (t == 0)
        while (atomicAdd(full, 0) != 1) {
        }
      __syncthreads();
      __threadfence();
      y[r * 64 + t] = box[t];
      __threadfence();
      __syncthreads();
      if (t == 0) atomicExch(full, 0);
    }
  }
}

// The same by release and acquire of cuda::atomic_ref, one warp each.
__global__ void released(int* y, int* box, int* flag, const int* x) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (blockIdx.x == 0) {
    box[threadIdx.x] = x[threadIdx.x] + 1;
    __syncwarp();
    if (threadIdx.x == 0) ready.store(1, cuda::memory_order_release);
  } else {
    if (threadIdx.x == 0)
      while (ready.load(cuda::memory_order_acquire) == 0) {
      }
    __syncwarp();
    y[threadIdx.x] = box[31 - threadIdx.x];
  }
}
