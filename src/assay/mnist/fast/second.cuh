// The second convolution, forward: y[o][pixel] = sum over channels and taps, by tensor cores.
//
// A holds weights (16 outputs a tile), B the planes of one digit. The eight columns of a tile are
// half a row: the left and right pixels of four pooling windows; the next tile has the pixels below,
// so that each thread holds whole windows. A step of eight k is one tap of eight channels. A warp
// goes down a half of the plane: a row of it is read once for the three taps above one another.
#pragma once

#include "first.cuh"

constexpr int STEPS = K2 / 8;  // 18
constexpr int EACH = 4;        // fours of windows of a warp, one below the other; or one fewer

// KNOWN2: scale, shift, mean and 1 / deviation of the second batchnorm.
constexpr int SCALE2 = 0, SHIFT2 = 32, MEAN2 = 64, RSTD2 = 96, KNOWN2 = 128;

// Weights on their way to fragments lie output by output, OS floats each: 17 modulo the 32 banks.
constexpr int OS = K2 + 1;

struct Staged {
  float w[C2 * K2 / THREADS];
  static_assert(C2 * K2 % THREADS == 0 && OS == K2 + 1, "no thread has a rest");

  __device__ __forceinline__ explicit Staged(const float* parameters) {  // all loads at once
#pragma unroll
    for (int n = 0; n < C2 * K2 / THREADS; ++n)
      w[n] = parameters[CONV2 + threadIdx.x + n * THREADS];
  }
  __device__ __forceinline__ void put(float* stage) const {
#pragma unroll
    for (int n = 0; n < C2 * K2 / THREADS; ++n) {
      const int i = threadIdx.x + n * THREADS;
      stage[i + i / K2] = tf32(w[n]);
    }
  }
};
// The fragments that the forward reads, of staged weights: [tile][step][lane][4].
__device__ __forceinline__ void put_weights(float* weights, const float* stage) {
  for (int i = threadIdx.x; i < C2 * K2 / 4; i += THREADS) {
    const int lane = i % 32, s = i / 32 % STEPS, tile = i / 32 / STEPS;
    const float* w =
        stage + (tile * 16 + lane / 4) * OS + (s % 2 * 8 + lane % 4) * TAPS + s / 2;
    reinterpret_cast<float4*>(weights)[i] =
        make_float4(w[0], w[8 * OS], w[4 * TAPS], w[8 * OS + 4 * TAPS]);
  }
}

struct SecondConv {
  int row, at, tile, half, top;  // top: the first row of windows

  __device__ SecondConv() {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    row = lane / 4, at = lane % 4, tile = warp % 2, half = warp / 2 % 2, top = warp / 4 * EACH;
  }
  // Whether it has the last four of the EACH.
  __device__ __forceinline__ bool full() const { return top == 0; }
  // The column of the windows that this thread holds.
  __device__ __forceinline__ int column() const { return 4 * half + at; }
  __device__ __forceinline__ bool has(int e) const {
    return column() < P2 && (e + 1 < EACH || full());
  }

  // y[e][below][2 i + right]: of output 16 tile + row + 8 i, the window in row top + e.
  __device__ __forceinline__ void run(float (&y)[EACH][2][4], const float* weights,
                                      const float* a) const {
#pragma unroll
    for (int i = 0; i < EACH * 8; ++i) y[i / 8][i / 4 % 2][i % 4] = 0.f;
    const float4* fragment =
        reinterpret_cast<const float4*>(weights) + tile * STEPS * 32 + threadIdx.x % 32;
    const float* from = a + at * PS + at_pixel(2 * top - 1, 8 * half - 1) + row;
#pragma unroll
    for (int s = 0; s < 6; ++s) {  // a column of taps of eight channels
      const int column = s / 2, eight = s % 2;
      float4 k[3];
#pragma unroll
      for (int r = 0; r < 3; ++r) k[r] = fragment[((r * 3 + column) * 2 + eight) * 32];
      const float* p = from + eight * 8 * PS + column;
#pragma unroll
      for (int line = 0; line < 2 * EACH + 2; ++line) {
        if (line >= 2 * EACH && !full()) continue;
        const float b0 = p[line * RS], b1 = p[line * RS + 4 * PS];
#pragma unroll
        for (int r = 0; r < 3; ++r) {
          const int out = line - r;
          if (out < 0 || out >= 2 * EACH || (out / 2 + 1 == EACH && !full())) continue;
          mma8(y[out / 2][out % 2], k[r].x, k[r].y, k[r].z, k[r].w, b0, b1);
        }
      }
    }
  }
};

// m[digit][o * W2 + window]: the pooled winner of y (its bias left out: batchnorm takes it away
// again). parts[block]: sums of y, then of y^2, of each output. known1 is left for later kernels.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    second_conv(float* m, float* parts, float* known1, const float* products, int rows,
                const float* parameters, const unsigned char* images, const i64* order,
                const int* step, int batch) {
  __shared__ __align__(16) float a[C1 * PS + XSIZE];  // and x; the weights are staged in it
  __shared__ __align__(16) float weights[C2 * K2];
  __shared__ float known[KNOWN1], values[VALUES];
  __shared__ double sums[PAIRS];
  static_assert(C2 * OS <= C1 * PS + XSIZE, "staged weights fit");
  float* x = a + C1 * PS;
  const Digits digits{images, nullptr, order, *step, batch};
  u32 word = digits.word(blockIdx.x);
  i64 image = digits.image(blockIdx.x + gridDim.x);
  put_values(values);
  assay::await_previous_kernel();
  assay::let_next_kernel_start();
  const Staged staged(parameters);  // they arrive together with the rows of `products`
  if (threadIdx.x == 0) known[NOW] = __int_as_float(digits.step);
  first_statistics(known, sums, weights, products, rows, parameters, batch,
                   [&] { staged.put(a); });
  if (blockIdx.x == 0 && threadIdx.x < KNOWN1) known1[threadIdx.x] = known[threadIdx.x];
  put_weights(weights, a);
  __syncthreads();
  clear(a, C1 * PS + XSIZE);
  const FirstConv first(parameters, known);
  const SecondConv second;
  float sign[2], sum[2] = {}, square[2] = {};
#pragma unroll
  for (int i = 0; i < 2; ++i)
    sign[i] = sign_of(parameters[BN2_W + second.tile * 16 + second.row + i * 8]);
  for (int b = blockIdx.x; b < batch; b += gridDim.x) {
    __syncthreads();
    put_word(x, word, values);
    __syncthreads();
    word = digits.pixels(image);  // a load that waits for another waits at once, so that is done before
    image = digits.image(b + 2 * gridDim.x);
    first.run<false>(a, nullptr, x);
    __syncthreads();
    float y[EACH][2][4];
    second.run(y, weights, a);
    float* out = m + i64(b) * FLAT + (second.tile * 16 + second.row) * W2;
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
      if (!second.has(e)) continue;
      const int window = (second.top + e) * P2 + second.column();
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float v[4] = {y[e][0][2 * i], y[e][0][2 * i + 1], y[e][1][2 * i],
                            y[e][1][2 * i + 1]};
        float best;
        winner(v, sign[i], best);
        out[i * 8 * W2 + window] = best;
#pragma unroll
        for (int n = 0; n < 4; ++n) sum[i] += v[n], square[i] += v[n] * v[n];
      }
    }
  }
  __syncthreads();
  float(*over)[64] = reinterpret_cast<float(*)[64]>(x);  // [part of the plane][sum or square of an output]
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int far = 1; far < 4; far *= 2) {
      sum[i] += __shfl_xor_sync(~0u, sum[i], far);
      square[i] += __shfl_xor_sync(~0u, square[i], far);
    }
  }
  if (second.at == 0)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int o = second.tile * 16 + second.row + i * 8;
      const int part = threadIdx.x / 64;
      over[part][o] = sum[i], over[part][C2 + o] = square[i];
    }
  __syncthreads();
  if (threadIdx.x < 64)
    parts[i64(blockIdx.x) * 64 + threadIdx.x] = over[0][threadIdx.x] + over[1][threadIdx.x] +
                                                over[2][threadIdx.x] + over[3][threadIdx.x];
}

// Fills known (KNOWN2 floats, shared) from the sums of all blocks. scratch: 4 KB.
__device__ void second_statistics(float* known, double* sums, float* scratch, const float* parts,
                                  int rows, const float* parameters, int batch) {
  const int c = threadIdx.x % C2;
  const float gamma = parameters[BN2_W + c], beta = parameters[BN2_B + c];
  sum_rows<64>(sums, scratch, parts, rows);
  if (threadIdx.x < C2) {
    const double count = double(batch) * W1, mean = sums[c] / count;
    const float rstd = rsqrtf(float(sums[C2 + c] / count - mean * mean) + EPSILON);
    const float scale = gamma * rstd;
    known[SCALE2 + c] = scale;
    known[SHIFT2 + c] = beta - float(mean) * scale;
    known[MEAN2 + c] = float(mean);
    known[RSTD2 + c] = rstd;
  }
  __syncthreads();
}
