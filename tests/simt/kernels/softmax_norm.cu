// Softmax, normalisations and losses: one block or one warp a row.
#include <cuda_bf16.h>

template <int THREADS, class F>
__device__ float block_fold(float v, float* tree, F fold) {
  const int t = threadIdx.x;
  tree[t] = v;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (t < half) tree[t] = fold(tree[t], tree[t + half]);
    __syncthreads();
  }
  const float all = tree[0];
  __syncthreads();  // tree is written again by the next fold
  return all;
}

// y[r] = softmax(x[r]): largest value, sum of exp, quotient, one block of 64 a row, two folds in
// one piece of shared memory. 8 n bytes a row beyond the caches, 5 n FLOPs.
template <typename T>
__global__ void softmax(T* y, const T* x, int n) {
  __shared__ float tree[64];
  x += blockIdx.x * n;
  y += blockIdx.x * n;
  float most = -3.4e38f, sum = 0;
  for (int i = threadIdx.x; i < n; i += 64) most = fmaxf(most, static_cast<float>(x[i]));
  most = block_fold<64>(most, tree, [](float a, float b) { return fmaxf(a, b); });
  for (int i = threadIdx.x; i < n; i += 64) sum += expf(static_cast<float>(x[i]) - most);
  sum = block_fold<64>(sum, tree, [](float a, float b) { return a + b; });
  for (int i = threadIdx.x; i < n; i += 64)
    y[i] = static_cast<T>(expf(static_cast<float>(x[i]) - most) / sum);
}

// The same, one warp a row and no shared memory: warps whose row is not there leave at once.
__global__ void softmax_warp(float* y, const float* x, int rows, int n) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x & 31;
  if (row >= rows) return;
  float most = -3.4e38f, sum = 0;
  for (int i = lane; i < n; i += 32) most = fmaxf(most, x[row * n + i]);
  for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
  for (int i = lane; i < n; i += 32) sum += expf(x[row * n + i] - most);
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  for (int i = lane; i < n; i += 32) y[row * n + i] = expf(x[row * n + i] - most) / sum;
}

// The same in two walks: each thread keeps (max, sum relative to it), pairs are merged in a tree.
__global__ void softmax_online(float* y, const float* x, int n) {
  __shared__ float2 pair[32];
  x += blockIdx.x * n;
  y += blockIdx.x * n;
  const int t = threadIdx.x;
  float most = -3.4e38f, sum = 0;
  for (int i = t; i < n; i += 32) {
    const float larger = fmaxf(most, x[i]);
    sum = sum * expf(most - larger) + expf(x[i] - larger);
    most = larger;
  }
  pair[t] = make_float2(most, sum);
  __syncwarp();
#pragma unroll 1
  for (int half = 16; half > 0; half /= 2) {
    if (t < half) {
      const float2 a = pair[t], b = pair[t + half];
      const float larger = fmaxf(a.x, b.x);
      pair[t] = make_float2(larger, a.y * expf(a.x - larger) + b.y * expf(b.x - larger));
    }
    __syncwarp();
  }
  const float2 all = pair[0];
  for (int i = t; i < n; i += 32) y[i] = expf(x[i] - all.x) / all.y;
}

// y[r] = (x[r] - mean) / sqrt(var + eps) * w + b, the row kept in dynamic shared memory between
// the three walks. 8 n bytes a row.
__global__ void layernorm(float* y, const float* x, const float* w, const float* b, float eps,
                          int n) {
  extern __shared__ float row[];
  __shared__ float tree[128];
  const auto add = [](float p, float q) { return p + q; };
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < n; i += 128) sum += row[i] = x[blockIdx.x * n + i];
  const float mean = block_fold<128>(sum, tree, add) / n;
  for (int i = threadIdx.x; i < n; i += 128) squares += (row[i] - mean) * (row[i] - mean);
  const float scale = rsqrtf(block_fold<128>(squares, tree, add) / n + eps);
  for (int i = threadIdx.x; i < n; i += 128)
    y[blockIdx.x * n + i] = (row[i] - mean) * scale * w[i] + b[i];
}

// y[r] = x[r] / sqrt(mean(x^2) + eps) * w in bfloat16, pairs at a time, sums in float. 4 n bytes.
__global__ void rmsnorm_bf16(__nv_bfloat162* y, const __nv_bfloat162* x, const __nv_bfloat162* w,
                             float eps, int pairs) {
  __shared__ float of_warp[4];
  __shared__ float scale;
  float sum = 0;
  for (int i = threadIdx.x; i < pairs; i += 128) {
    const float2 v = __bfloat1622float2(x[blockIdx.x * pairs + i]);
    sum += v.x * v.x + v.y * v.y;
  }
  for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0)
    scale = rsqrtf((of_warp[0] + of_warp[1] + of_warp[2] + of_warp[3]) / (2 * pairs) + eps);
  __syncthreads();
  for (int i = threadIdx.x; i < pairs; i += 128) {
    const float2 v = __bfloat1622float2(x[blockIdx.x * pairs + i]), k = __bfloat1622float2(w[i]);
    y[blockIdx.x * pairs + i] = __floats2bfloat162_rn(v.x * scale * k.x, v.y * scale * k.y);
  }
}

// loss[r] = log(sum exp(x[r])) - x[r, label[r]]; rows with label -1 count nothing. 4 n bytes a row.
__global__ void cross_entropy(float* loss, const float* x, const long long* label, int n) {
  __shared__ float tree[64];
  const long long at = label[blockIdx.x];
  if (at < 0) {  // the whole block
    if (threadIdx.x == 0) loss[blockIdx.x] = 0;
    return;
  }
  x += blockIdx.x * n;
  float most = -3.4e38f, sum = 0;
  for (int i = threadIdx.x; i < n; i += 64) most = fmaxf(most, x[i]);
  most = block_fold<64>(most, tree, [](float a, float b) { return fmaxf(a, b); });
  for (int i = threadIdx.x; i < n; i += 64) sum += expf(x[i] - most);
  sum = block_fold<64>(sum, tree, [](float a, float b) { return a + b; });
  if (threadIdx.x == 0) loss[blockIdx.x] = most + logf(sum) - x[at];
}

// Batch normalisation's statistics of an (N, C, L) tensor: one block a channel.
__global__ void batch_statistics(float* mean, float* variance, const float* x, int N, int C, int L) {
  __shared__ float tree[96];  // not a power of two: the last warp is added first
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < N * L; i += 96) {
    const float v = x[(i / L * C + blockIdx.x) * L + i % L];
    sum += v;
    squares += v * v;
  }
  for (int pass = 0; pass < 2; ++pass) {
    tree[threadIdx.x] = pass ? squares : sum;
    __syncthreads();
    if (threadIdx.x < 32)
      tree[threadIdx.x] += tree[threadIdx.x + 32] + tree[threadIdx.x + 64];
    __syncthreads();
    if (threadIdx.x == 0) {
      float all = 0;
      for (int k = 0; k < 32; ++k) all += tree[k];
      (pass ? variance : mean)[blockIdx.x] = all / (N * L);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) variance[blockIdx.x] -= mean[blockIdx.x] * mean[blockIdx.x];
}
