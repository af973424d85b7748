// Sums, largest values and moments: trees in shared memory, shuffles, votes, atomics.

// partial[b] = sum of block b's elements: a tree in dynamic shared memory, log2(threads) steps.
// 4 n bytes, n FLOPs.
__global__ void sum_tree(float* partial, const float* x, int n) {
  extern __shared__ float tree[];
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  tree[t] = i < n ? x[i] : 0;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) tree[t] += tree[t + half];
  }
  if (t == 0) partial[blockIdx.x] = tree[0];
}

// The same tree for 128 threads, unrolled by hand: a barrier after each step, as in textbooks.
__global__ void sum_tree_unrolled(float* partial, const float* x, int n) {
  __shared__ float tree[128];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  tree[t] = (i < n ? x[i] : 0) + (i + 128 < n ? x[i + 128] : 0);
  __syncthreads();
  if (t < 64) tree[t] += tree[t + 64];
  __syncthreads();
  if (t < 32) {
    tree[t] += tree[t + 32];
    __syncwarp();
    if (t < 16) tree[t] += tree[t + 16];
    __syncwarp();
    if (t < 8) tree[t] += tree[t + 8];
    __syncwarp();
    if (t < 4) tree[t] += tree[t + 4];
    __syncwarp();
    if (t < 2) tree[t] += tree[t + 2];
    __syncwarp();
    if (t < 1) partial[blockIdx.x] = tree[0] + tree[1];
  }
}

__device__ __forceinline__ float warp_sum(float v) {
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffff, v, step);
  return v;
}

// partial[b] = sum of block b: shuffles in each warp, one shared word a warp, shuffles again.
// Any block that is a multiple of 32 up to 1024. 4 n bytes, n FLOPs.
__global__ void sum_shuffle(float* partial, const float* x, int n) {
  __shared__ float of_warp[32];
  const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) v += x[i];
  v = warp_sum(v);
  if (lane == 0) of_warp[warp] = v;
  __syncthreads();
  if (warp == 0) {
    v = warp_sum(lane < blockDim.x / 32 ? of_warp[lane] : 0);
    if (lane == 0) partial[blockIdx.x] = v;
  }
}

// total += sum(x): a shuffle sum a warp, then one atomic a warp. total starts at 0.
__global__ void sum_atomic(float* total, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = warp_sum(i < n ? x[i] : 0);
  if ((threadIdx.x & 31) == 0) atomicAdd(total, v);
}

// best = max over (value, index) packed in 64 bits, so that one atomic decides both. best starts
// at 0; values are positive, whose bits order as they do.
__global__ void argmax_packed(unsigned long long* best, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned long long packed =
      static_cast<unsigned long long>(__float_as_uint(x[i])) << 32 | (0xffffffffu - i);
  atomicMax(best, packed);
}

// index[r] = argmax of row r: pairs through shared memory, the first of equals wins.
__global__ void argmax_rows(int* index, const float* x, int n) {
  __shared__ float value[128];
  __shared__ int place[128];
  const int t = threadIdx.x;
  const float* row = x + blockIdx.x * n;
  float best = -3.4e38f;
  int at = n;
  for (int i = t; i < n; i += 128)
    if (row[i] > best) best = row[i], at = i;
  value[t] = best;
  place[t] = at;
#pragma unroll 1
  for (int half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (t >= half) continue;
    const float other = value[t + half];
    if (other > value[t] || (other == value[t] && place[t + half] < place[t])) {
      value[t] = other;
      place[t] = place[t + half];
    }
  }
  if (t == 0) index[blockIdx.x] = place[0];
}

// counts[b] = {how many of block b are positive, whether all are, whether any is}.
__global__ void count_votes(int* counts, const int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const bool positive = i < n && x[i] > 0;
  const int many = __syncthreads_count(positive);
  const int all = __syncthreads_and(positive || i >= n);
  const int any = __syncthreads_or(positive);
  if (threadIdx.x == 0) {
    counts[3 * blockIdx.x] = many;
    counts[3 * blockIdx.x + 1] = all != 0;
    counts[3 * blockIdx.x + 2] = any != 0;
  }
}

// partial[b] = part of x . y, by 16-byte loads; n a multiple of 4. 8 n bytes, 2 n FLOPs.
__global__ void dot_float4(float* partial, const float4* x, const float4* y, int quads) {
  __shared__ float tree[128];
  float sum = 0;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < quads; i += gridDim.x * 128) {
    const float4 a = x[i], b = y[i];
    sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
  }
  tree[threadIdx.x] = sum;
#pragma unroll 1
  for (int half = 64; half > 0; half >>= 1) {
    __syncthreads();
    if (threadIdx.x < half) tree[threadIdx.x] += tree[threadIdx.x + half];
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = tree[0];
}

struct Moments {
  float count, mean, m2;
};

__device__ Moments joined(Moments a, Moments b) {
  const float count = a.count + b.count, delta = b.mean - a.mean;
  if (count == 0) return a;
  return {count, a.mean + delta * b.count / count,
          a.m2 + b.m2 + delta * delta * a.count * b.count / count};
}

// mean and variance of each row by Welford's update and Chan's merging, a structure in shared
// memory. 4 n bytes a row.
__global__ void welford_rows(float* mean, float* variance, const float* x, int n) {
  __shared__ Moments part[64];
  const int t = threadIdx.x;
  Moments own = {0, 0, 0};
  for (int i = t; i < n; i += 64) {
    const float v = x[blockIdx.x * n + i], delta = v - own.mean;
    own.count += 1;
    own.mean += delta / own.count;
    own.m2 += delta * (v - own.mean);
  }
  part[t] = own;
  __syncthreads();
#pragma unroll 1
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) part[t] = joined(part[t], part[t + half]);
    __syncthreads();
  }
  if (t == 1) mean[blockIdx.x] = part[0].mean;
  if (t == 2) variance[blockIdx.x] = part[0].m2 / n;
}

// y[c] = sum over rows of x[r, c]: 32 x 8 threads walk down 32 columns, then a transposed sum.
// 4 rows * columns bytes.
__global__ void sum_columns(float* y, const float* x, int rows, int columns) {
  __shared__ float tile[8][33];
  const int c = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (c < columns)
    for (int r = threadIdx.y; r < rows; r += 8) sum += x[r * columns + c];
  tile[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y) return;
  sum = 0;
  for (int k = 0; k < 8; ++k) sum += tile[k][threadIdx.x];
  if (c < columns) y[c] = sum;
}

// extremes = {min, max} of x: redux.sync in each warp, then atomics. Starts at {2^31-1, -2^31}.
__global__ void minimum_maximum(int* extremes, const int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int v = x[i < n ? i : n - 1];
  const int low = __reduce_min_sync(0xffffffff, v), high = __reduce_max_sync(0xffffffff, v);
  if ((threadIdx.x & 31) == 0) {
    atomicMin(extremes, low);
    atomicMax(extremes + 1, high);
  }
}

// partial[b] = Kahan's compensated sum of a thread's column, then a plain tree, in one block.
__global__ void sum_compensated(float* total, const float* x, int n) {
  __shared__ float tree[64];
  float sum = 0, lost = 0;
  for (int i = threadIdx.x; i < n; i += 64) {
    const float v = __fsub_rn(x[i], lost), next = __fadd_rn(sum, v);
    lost = __fsub_rn(__fsub_rn(next, sum), v);
    sum = next;
  }
  tree[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    float v = tree[threadIdx.x] + tree[threadIdx.x + 32];
    v = warp_sum(v);
    if (threadIdx.x == 0) *total = v;
  }
}

// norm[r] = sqrt(sum x^2) of rows longer than a block, with an early return of rows that are not
// there before any barrier. 4 n bytes a row.
__global__ void norm_rows(float* norm, const float* x, int rows, int n) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  __shared__ float part[4][32];
  float sum = 0;
  if (row < rows)
    for (int i = threadIdx.x; i < n; i += 32) sum += x[row * n + i] * x[row * n + i];
  part[threadIdx.y][threadIdx.x] = sum;
  if (row >= rows) return;
  __syncwarp();
  for (int step = 16; step > 0; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.y][threadIdx.x] += part[threadIdx.y][threadIdx.x + step];
    __syncwarp();
  }
  if (threadIdx.x == 0) norm[row] = sqrtf(part[threadIdx.y][0]);
}
