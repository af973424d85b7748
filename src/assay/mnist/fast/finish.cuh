// The end of a step: partial gradients of all blocks summed in a fixed order, and weights updated
// with them at once.
#pragma once

#include "convs_grad.cuh"

constexpr int FC1_BLOCKS = HIDDEN * FLAT / 4 / THREADS;    // 196, a thread four weights
constexpr int COLUMNS = 32;                                // of a block that sums columns
constexpr int CONV_BLOCKS = C2 * K2 / COLUMNS;             // 144
constexpr int HEAD_BLOCKS = (HEAD + COLUMNS - 1) / COLUMNS;  // 45
static_assert(HIDDEN * FLAT % (4 * THREADS) == 0 && C2 * K2 % COLUMNS == 0, "no block has a rest");

// What is done with a gradient: kept, or the weight goes against it.
struct Update {
  float *parameters, *speed, *gradients;
  float rate, momentum;
  bool keep;

  // A weight and its speed, read before the gradient is known.
  struct Old {
    float weight, speed;
  };
  __device__ __forceinline__ Old old(int i) const {
    if (keep) return {};
    return {parameters[i], momentum > 0.f ? speed[i] : 0.f};
  }
  __device__ __forceinline__ void operator()(int i, float g, const Old& old) const {
    if (keep) {
      gradients[i] = g;
      return;
    }
    if (momentum > 0.f) {  // Nesterov's, as torch.optim.SGD has it
      const float v = speed[i] = momentum * old.speed + g;
      g += momentum * v;
    }
    parameters[i] = old.weight - rate * g;
  }
  // Of four weights side by side; i is a multiple of 4, as all arrays are aligned.
  struct Olds {
    float4 weight, speed;
  };
  __device__ __forceinline__ Olds olds(int i) const {
    if (keep) return {};
    return {at(parameters, i), momentum > 0.f ? at(speed, i) : float4{}};
  }
  __device__ __forceinline__ void operator()(int i, float4 g, const Olds& old) const {
    if (keep) {
      at(gradients, i) = g;
      return;
    }
    if (momentum > 0.f) {
      const float4 s = old.speed;
      const float4 v = make_float4(momentum * s.x + g.x, momentum * s.y + g.y,
                                   momentum * s.z + g.z, momentum * s.w + g.w);
      at(speed, i) = v;
      g.x += momentum * v.x, g.y += momentum * v.y, g.z += momentum * v.z, g.w += momentum * v.w;
    }
    const float4 w = old.weight;
    at(parameters, i) =
        make_float4(w.x - rate * g.x, w.y - rate * g.y, w.z - rate * g.z, w.w - rate * g.w);
  }
  static __device__ __forceinline__ float4& at(float* p, int i) {
    return *reinterpret_cast<float4*>(p + i);
  }
};
static_assert(FC1 % 4 == 0, "fours of its weights are aligned");

// Sum of column `first + threadIdx.x` over rows, for threads below COLUMNS.
__device__ __forceinline__ float column_sum(float (*scratch)[COLUMNS], const float* parts, int width,
                                            int first, int rows) {
  constexpr int GROUPS = THREADS / 8;
  const int quad = threadIdx.x % 8, group = threadIdx.x / 8, at = first + quad * 4;
  *reinterpret_cast<float4*>(&scratch[group][quad * 4]) =
      sum_fours<9>(parts + i64(group) * width + at, i64(GROUPS) * width,
                   at < width ? count_of(group, rows, GROUPS) : 0);
  __syncthreads();
  float total = 0.f;
  if (threadIdx.x < COLUMNS)
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) total += scratch[g][threadIdx.x];
  return total;
}

// A channel of the first convolution and its batchnorm. dgamma = rstd (w . D - mean dbeta), where D is
// the sum over winners of dz times the patch; dw = scale (D - dbeta / N M - dgamma / N rstd (S w - mean
// M)). Lane j of the first warp has tap j; lanes 16 and up do as those below. The first block does the
// second batchnorm too, in the second warp.
__device__ void finish_first(const Update& update, float* scratch, const float* parts_1, int rows,
                             const float* known1, const float* sums2, int batch, int c) {
  constexpr int GROUPS = THREADS / 4;
  const int quad = threadIdx.x % 4, group = threadIdx.x / 4, lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32, j = lane % 16, tap = j < TAPS ? j : 0;
  const double mean = known1[MEAN + c], rstd = known1[RSTD + c], scale = known1[SCALE + c];
  const double m = known1[PRODUCTS + tap * PAIRED + TAPS];
  const float* weights = update.parameters + CONV1 + c * TAPS;
  const double w = tf32(weights[tap]);
  double spread = 0;
#pragma unroll
  for (int i = 0; i < TAPS; ++i)
    spread += known1[PRODUCTS + tap * PAIRED + i] * double(tf32(weights[i]));
  const int mine = j < TAPS ? CONV1 + c * TAPS + j
                            : (j == 9 ? BN1_W : j == 10 ? BN1_B : CONV1_BIAS) + c;
  const Update::Old old = update.old(mine);
  const bool second = warp == 1 && c == 0;
  Update::Old gamma{}, beta{}, bias{};
  if (second)
    gamma = update.old(BN2_W + lane), beta = update.old(BN2_B + lane),
    bias = update.old(CONV2_BIAS + lane);
  assay::await_previous_kernel();
  assay::let_next_kernel_start();
  float4 v = sum_fours<5>(parts_1 + i64(group) * D1 + c * 16 + quad * 4, GROUPS * D1,
                          count_of(group, rows, GROUPS));
#pragma unroll
  for (int far = 4; far < 32; far *= 2) {
    v.x += __shfl_xor_sync(~0u, v.x, far), v.y += __shfl_xor_sync(~0u, v.y, far);
    v.z += __shfl_xor_sync(~0u, v.z, far), v.w += __shfl_xor_sync(~0u, v.w, far);
  }
  if (lane < 4) *reinterpret_cast<float4*>(scratch + warp * 16 + quad * 4) = v;
  __syncthreads();
  if (warp == 0) {
    double sum = 0;
#pragma unroll
    for (int i = 0; i < WARPS; ++i) sum += scratch[i * 16 + j];
    const double dbeta = __shfl_sync(~0u, sum, TAPS);
    double product = j < TAPS ? w * sum : 0.;
#pragma unroll
    for (int far = 1; far < 16; far *= 2) product += __shfl_xor_sync(~0u, product, far);
    const double dgamma = rstd * (product - mean * dbeta), count = double(batch) * PIXELS;
    const double grad =
        scale * (sum - dbeta / count * m - dgamma / count * rstd * (spread - mean * m));
    const double bn = j == 9 ? dgamma : j == 10 ? dbeta : 0.;  // a bias before it is taken away
    if (lane < TAPS + 3) update(mine, float(j < TAPS ? grad : bn), old);
  }
  if (second) {
    update(BN2_B + lane, sums2[lane], beta);
    update(BN2_W + lane, sums2[C2 + lane], gamma);
    update(CONV2_BIAS + lane, 0.f, bias);
  }
}

// losses[step] and the update by rates[step]; with `keep` gradients are written instead. grid:
// FC1_BLOCKS, HEAD_BLOCKS, CONV_BLOCKS and C1 blocks. The last two kinds need `convs_grad`, which may
// still run.
extern "C" __global__ void __launch_bounds__(THREADS)
    finish(float* parameters, float* speed, float* gradients, float* losses, const float* rates,
           const int* step, int advance, float momentum, int keep, const float* fc1, int splits,
           const float* parts_k, const float* parts_1, int rows, const float* heads, int head_rows,
           const float* known1, const float* sums2, int batch) {
  __shared__ __align__(16) float scratch[THREADS / 8][COLUMNS];
  const int now = *step - advance;
  const Update update{parameters, speed, gradients, rates[now], momentum, keep != 0};
  int block = blockIdx.x;
  if (block < FC1_BLOCKS) {
    const int i = 4 * (block * THREADS + threadIdx.x);
    const Update::Olds old = update.olds(FC1 + i);
    update(FC1 + i, sum_fours<8>(fc1 + i, HIDDEN * FLAT, splits), old);
    return;
  }
  block -= FC1_BLOCKS;
  if (block < HEAD_BLOCKS) {
    const int n = block * COLUMNS + threadIdx.x;
    const int i = n < HEAD_BIAS2   ? FC2 + n
                  : n < HEAD_BIAS1 ? FC2_BIAS + n - HEAD_BIAS2
                                   : FC1_BIAS + n - HEAD_BIAS1;
    const bool ours = threadIdx.x < COLUMNS && n < HEAD_LOSS;
    const Update::Old old = ours ? update.old(i) : Update::Old{};
    const float g = column_sum(scratch, heads, HEAD, block * COLUMNS, head_rows);
    if (ours) update(i, g, old);
    if (threadIdx.x < COLUMNS && n == HEAD_LOSS) losses[now] = g;
    return;
  }
  block -= HEAD_BLOCKS;
  if (block < CONV_BLOCKS) {
    const int n = block * COLUMNS + threadIdx.x % COLUMNS;
    // of fragments: [tile][tile of weights][4][lane]
    const int lane = n % 32, part = n / 32 % 4, k = n / 128 % KTILES, tile = n / 128 / KTILES;
    const int o = tile * 16 + lane / 4 + part / 2 * 8;
    const int c = k % 2 * 8 + lane % 4 * 2 + part % 2;
    const int i = CONV2 + o * K2 + c * TAPS + k / 2;
    const Update::Old old = update.old(i);
    assay::await_previous_kernel();
    assay::let_next_kernel_start();
    const float g = column_sum(scratch, parts_k, C2 * K2, block * COLUMNS, rows);
    if (threadIdx.x < COLUMNS) update(i, g, old);
    return;
  }
  finish_first(update, scratch[0], parts_1, rows, known1, sums2, batch, block - CONV_BLOCKS);
}

// w <- w - rate g for all parameters: the update alone, of gradients that `finish` kept.
extern "C" __global__ void __launch_bounds__(THREADS)
    update_all(float* parameters, const float* gradients, const float* rates) {
  const int i = blockIdx.x * THREADS + threadIdx.x;
  if (i < PARAMETERS) parameters[i] -= rates[0] * gradients[i];
}
