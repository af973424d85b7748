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

  __device__ __forceinline__ void operator()(int i, float g) const {
    if (keep) {
      gradients[i] = g;
      return;
    }
    if (momentum > 0.f) {  // Nesterov's, as torch.optim.SGD has it
      const float v = speed[i] = momentum * speed[i] + g;
      g += momentum * v;
    }
    parameters[i] -= rate * g;
  }
};

// Sum of column `first + threadIdx.x` over rows, for threads below COLUMNS.
__device__ __forceinline__ float column_sum(float (*scratch)[COLUMNS], const float* parts, int width,
                                            int first, int rows) {
  const int quad = threadIdx.x % 8, group = threadIdx.x / 8, at = first + quad * 4;
  float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
  if (at < width)
#pragma unroll 8
    for (int r = group; r < rows; r += THREADS / 8) {
      const float4 v = *reinterpret_cast<const float4*>(parts + i64(r) * width + at);
      sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
  *reinterpret_cast<float4*>(&scratch[group][quad * 4]) = sum;
  __syncthreads();
  float total = 0.f;
  if (threadIdx.x < COLUMNS)
#pragma unroll 8
    for (int g = 0; g < THREADS / 8; ++g) total += scratch[g][threadIdx.x];
  return total;
}

// The first convolution and both batchnorms. dgamma = rstd (w . D - mean dbeta), where D is the sum
// over winners of dz times the patch; dw = scale (D - dbeta / N M - dgamma / N rstd (S w - mean M)).
__device__ void finish_first(const Update& update, float* scratch, const float* parts_1, int rows,
                             const float* known1, const float* sums2, int batch) {
  __shared__ double sums[D1], dgamma[C1];
  sum_rows<D1>(sums, scratch, parts_1, rows);
  const int c = threadIdx.x / 16, j = threadIdx.x % 16;
  const double mean = known1[MEAN + c], rstd = known1[RSTD + c], dbeta = sums[c * 16 + TAPS];
  const float* w = update.parameters + CONV1 + c * TAPS;
  if (j == 0) {
    double product = 0;
    for (int i = 0; i < TAPS; ++i) product += double(tf32(w[i])) * sums[c * 16 + i];
    dgamma[c] = rstd * (product - mean * dbeta);
  }
  __syncthreads();
  double grad = 0;
  if (j < TAPS) {
    const double count = double(batch) * PIXELS, m = known1[PRODUCTS + j * PAIRED + TAPS];
    double spread = 0;
    for (int i = 0; i < TAPS; ++i) spread += known1[PRODUCTS + j * PAIRED + i] * double(tf32(w[i]));
    grad = known1[SCALE + c] * (sums[c * 16 + j] - dbeta / count * m -
                                dgamma[c] / count * rstd * (spread - mean * m));
  }
  __syncthreads();
  if (j < TAPS) update(CONV1 + c * TAPS + j, float(grad));
  if (j == 9) update(BN1_W + c, float(dgamma[c]));
  if (j == 10) update(BN1_B + c, float(dbeta));
  if (j == 11) update(CONV1_BIAS + c, 0.f);  // batchnorm takes a bias in front of it away
  if (threadIdx.x < C2) {
    update(BN2_B + threadIdx.x, sums2[threadIdx.x]);
    update(BN2_W + threadIdx.x, sums2[C2 + threadIdx.x]);
    update(CONV2_BIAS + threadIdx.x, 0.f);
  }
}

// losses[step] and the update by rates[step]; with `keep` gradients are written instead.
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
    const int i = block * THREADS + threadIdx.x;
    float4 g = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll 8
    for (int s = 0; s < splits; ++s) {
      const float4 v = reinterpret_cast<const float4*>(fc1 + i64(s) * HIDDEN * FLAT)[i];
      g.x += v.x, g.y += v.y, g.z += v.z, g.w += v.w;
    }
    update(FC1 + 4 * i, g.x);
    update(FC1 + 4 * i + 1, g.y);
    update(FC1 + 4 * i + 2, g.z);
    update(FC1 + 4 * i + 3, g.w);
    return;
  }
  block -= FC1_BLOCKS;
  if (block >= HEAD_BLOCKS) {  // what is left is of `convs_grad`, which may still run
    wait_for_the_last();
    let_the_next_start();
  }
  if (block >= HEAD_BLOCKS && block < HEAD_BLOCKS + CONV_BLOCKS) {
    block -= HEAD_BLOCKS;
    const float g = column_sum(scratch, parts_k, C2 * K2, block * COLUMNS, rows);
    if (threadIdx.x >= COLUMNS) return;
    const int i = block * COLUMNS + threadIdx.x;  // a fragment: [tile][tile of weights][4][lane]
    const int lane = i % 32, part = i / 32 % 4, k = i / 128 % KTILES, tile = i / 128 / KTILES;
    const int o = tile * 16 + lane / 4 + part / 2 * 8;
    const int c = k % 2 * 8 + lane % 4 * 2 + part % 2;
    update(CONV2 + o * K2 + c * TAPS + k / 2, g);
    return;
  }
  if (block < HEAD_BLOCKS) {
    const float g = column_sum(scratch, heads, HEAD, block * COLUMNS, head_rows);
    const int i = block * COLUMNS + threadIdx.x;
    if (threadIdx.x >= COLUMNS || i > HEAD_LOSS) return;
    if (i == HEAD_LOSS)
      losses[now] = g;
    else if (i < HEAD_BIAS2)
      update(FC2 + i, g);
    else if (i < HEAD_BIAS1)
      update(FC2_BIAS + i - HEAD_BIAS2, g);
    else
      update(FC1_BIAS + i - HEAD_BIAS1, g);
    return;
  }
  finish_first(update, scratch[0], parts_1, rows, known1, sums2, batch);
}

// w <- w - rate g for all parameters: the update alone, of gradients that `finish` kept.
extern "C" __global__ void __launch_bounds__(THREADS)
    update_all(float* parameters, const float* gradients, const float* rates) {
  const int i = blockIdx.x * THREADS + threadIdx.x;
  if (i < PARAMETERS) parameters[i] -= rates[0] * gradients[i];
}
