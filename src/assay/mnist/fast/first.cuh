// The first convolution: the statistics of its batchnorm from products of pixels, and its pooled
// winners.
//
// With one input channel y = w . p for the 9 pixels p of a patch, so mean and variance follow from
// M = sum p and S = sum p p^T over all patches: mean = w . M / N, var = w^T S w / N - mean^2. Of z =
// s y + t, with s of a known sign, only the largest y (s > 0) or the smallest of a window counts.
#pragma once

#include "layout.cuh"

constexpr int PAIRS = 64;     // row of partial sums: 55 products of 10 things (9 pixels and a 1)
constexpr int PAIRED = TAPS + 1;
// KNOWN1: what is known of the first batchnorm, in this order, and the number of the step, an int.
constexpr int SCALE = 0, SHIFT = 16, MEAN = 32, RSTD = 48, PRODUCTS = 64, NOW = 164, KNOWN1 = 165;

__device__ __forceinline__ int pair_at(int i, int j) { return j * (j + 1) / 2 + i; }  // i <= j

// parts[block][pair_at(i, j)] = sum over this block's patches of p_i p_j, where p_9 = 1.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
    patch_products(float* parts, const unsigned char* images, const i64* order, const int* step,
                   int batch) {
  __shared__ __align__(16) float x[XSIZE];
  __shared__ float sums[WARPS][16][17], values[VALUES];
  assay::let_next_kernel_start();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, at = lane % 4;
  const Digits digits{images, nullptr, order, *step, batch};
  u32 word = digits.word(blockIdx.x);
  i64 image = digits.image(blockIdx.x + gridDim.x);
  clear(x, XSIZE);
  put_values(values);
  const int tap = tap_in_image(row), last = tap_in_image(8);
  float whole[2][4] = {};
  for (int b = blockIdx.x; b < batch; b += gridDim.x) {
    __syncthreads();
    put_word(x, word, values);
    __syncthreads();
    word = digits.pixels(image);  // a load that waits for another waits at once, so that is done before
    image = digits.image(b + 2 * gridDim.x);
    float c[2][4] = {};
    static_assert(SIDE / 4 < WARPS && SIDE % 4 == 0, "a warp four columns, and one warp none");
    if (warp < SIDE / 4)
#pragma unroll
      for (int line = 0; line < SIDE; line += 2) {
        float value[2][2];  // [half of the step][tile]: patch entries `row` and `row + 8` of a pixel
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float* p = x + (line + half) * XS + warp * 4 + at;
          value[half][0] = p[tap];
          value[half][1] = row == 0 ? p[last] : row == 1 ? 1.f : 0.f;
        }
#pragma unroll
        for (int tile = 0; tile < 2; ++tile)
          mma8(c[tile], value[0][0], value[0][1], value[1][0], value[1][1], value[0][tile],
               value[1][tile]);
      }
#pragma unroll
    for (int i = 0; i < 8; ++i) whole[i / 4][i % 4] += c[i / 4][i % 4];
  }
#pragma unroll
  for (int i = 0; i < 8; ++i)
    sums[warp][row + i % 4 / 2 * 8][i / 4 * 8 + 2 * at + i % 2] = whole[i / 4][i % 4];
  __syncthreads();
  const int i = threadIdx.x % 16, j = threadIdx.x / 16;
  float* out = parts + i64(blockIdx.x) * PAIRS;
  if (i <= j && j < PAIRED) {
    float sum = 0.f;
    for (int w = 0; w < WARPS; ++w) sum += sums[w][i][j];
    out[pair_at(i, j)] = sum;
  }
  if (threadIdx.x < PAIRS - 55) out[55 + threadIdx.x] = 0.f;
  assay::await_previous_kernel();  // it needs nothing of that, but the next kernel does
}

// Fills known (KNOWN1 floats, shared; NOW not) from the partial products of all blocks. Sixteen threads
// a channel: a row of S w each. `meanwhile` is called when the rows have arrived; what it writes can be
// read afterwards.
template <class Meanwhile>
__device__ __forceinline__ void first_statistics(float* known, double* sums, float* scratch,
                                                 const float* parts, int rows,
                                                 const float* parameters, int batch,
                                                 const Meanwhile& meanwhile) {
  const int c = threadIdx.x / 16, row = threadIdx.x % 16;
  static_assert(C1 * 16 == THREADS && TAPS <= 16, "sixteen threads a channel");
  float w[TAPS];
#pragma unroll
  for (int i = 0; i < TAPS; ++i) w[i] = parameters[CONV1 + c * TAPS + i];
  const float gamma = parameters[BN1_W + c], beta = parameters[BN1_B + c];
  sum_rows<PAIRS>(sums, scratch, parts, rows);
  meanwhile();
  if (threadIdx.x < PAIRED * PAIRED) {
    const int i = threadIdx.x / PAIRED, j = threadIdx.x % PAIRED;
    known[PRODUCTS + threadIdx.x] = float(sums[i <= j ? pair_at(i, j) : pair_at(j, i)]);
  }
  double mean = 0, square = 0;
  if (row < TAPS) {
    double own = 0;
#pragma unroll
    for (int i = 0; i < TAPS; ++i) {
      const double each = tf32(w[i]);
      square += each * sums[i <= row ? pair_at(i, row) : pair_at(row, i)];
      if (i == row) own = each;
    }
    square *= own, mean = own * sums[pair_at(row, TAPS)];
  }
#pragma unroll
  for (int far = 1; far < 16; far *= 2) {
    mean += __shfl_xor_sync(~0u, mean, far);
    square += __shfl_xor_sync(~0u, square, far);
  }
  if (row == 0) {
    const double count = double(batch) * PIXELS;
    mean /= count;
    const float rstd = rsqrtf(float(square / count - mean * mean) + EPSILON);
    const float scale = gamma * rstd;
    known[SCALE + c] = scale;
    known[SHIFT + c] = beta - float(mean) * scale;
    known[MEAN + c] = float(mean);
    known[RSTD + c] = rstd;
  }
  __syncthreads();
}

// Which of a window's four is pooled: the first of the largest, of the smallest if sign is -1.
__device__ __forceinline__ int winner(const float (&v)[4], float sign, float& best) {
  int at = 0;
  best = v[0];
#pragma unroll
  for (int i = 1; i < 4; ++i)
    if (sign * v[i] > sign * best) best = v[i], at = i;
  return at;
}
__device__ __forceinline__ float sign_of(float v) { return v > 0.f ? 1.f : v < 0.f ? -1.f : 0.f; }

// The first block of layers for one digit x: relu(scale y + shift) of pooled y into planes a
// (C1 x PS, tf32), and with CHOSEN which pixel of each window it was into chosen (C1 x W1).
struct FirstConv {
  float k8[4], k1[2], scale[2], shift[2], sign[2];
  int taps[3], row, at, warp;

  __device__ FirstConv(const float* parameters, const float* known) {
    const int lane = threadIdx.x % 32;
    warp = threadIdx.x / 32, row = lane / 4, at = lane % 4;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      k8[i] = tf32(parameters[CONV1 + (row + i % 2 * 8) * TAPS + at + i / 2 * 4]);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int c = row + i * 8;
      k1[i] = at == 0 ? tf32(parameters[CONV1 + c * TAPS + 8]) : 0.f;
      scale[i] = known[SCALE + c];
      shift[i] = known[SHIFT + c];
      sign[i] = sign_of(parameters[BN1_W + c]);
    }
    taps[0] = tap_in_image(at), taps[1] = tap_in_image(at + 4), taps[2] = tap_in_image(8);
  }

  template <bool CHOSEN>
  __device__ void run(float* a, unsigned char* chosen, const float* x) const {
    for (int p = warp; p < W1 / 4; p += 2 * WARPS) {  // two at once: they do not wait for one another
      const bool both = p + WARPS < W1 / 4;
      float c[2][2][4] = {};
#pragma unroll
      for (int u = 0; u < 2; ++u) {  // four windows: the columns of two tiles
        const int from = 4 * (u && both ? p + WARPS : p) + row / 2;
        const float* corner = x + from / P1 * 2 * XS + from % P1 * 2 + row % 2;
#pragma unroll
        for (int t = 0; t < 2; ++t) {
          const float* line = corner + t * XS;
          mma8(c[u][t], k8[0], k8[1], k8[2], k8[3], line[taps[0]], line[taps[1]]);
          mma4(c[u][t], k1[0], k1[1], line[taps[2]]);
        }
      }
#pragma unroll
      for (int u = 0; u < 2; ++u) {
        if (u && !both) break;
        const int window = 4 * (p + u * WARPS) + at;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float v[4] = {c[u][0][2 * i], c[u][0][2 * i + 1], c[u][1][2 * i],
                              c[u][1][2 * i + 1]};
          float best;
          const int found = winner(v, sign[i], best);
          const int channel = row + i * 8;
          a[channel * PS + at_pixel(window / P1, window % P1)] =
              tf32(relu(best * scale[i] + shift[i]));
          if (CHOSEN) chosen[channel * W1 + window] = found;
        }
      }
    }
  }
};
