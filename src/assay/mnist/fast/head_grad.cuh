// Gradients of linear 1568 -> 128: of its inputs through relu and into the second batchnorm's sums,
// and of its weights in parts of the batch. Two kinds of blocks share one launch.
#pragma once

#include "head.cuh"

constexpr int FS = 104, FTILES = 13;  // two channels are 98 features, 13 tiles of 8; 8 modulo 32
constexpr int STAGE = TILE * LS + CHUNK * FS;  // floats of a chunk; the next is on its way meanwhile
constexpr int HS = HIDDEN + 8, VS = CHUNK + 8;

// dz[digit][f] = (dh w1)[f] where relu passed, of TILE digits and the features of two channels.
// parts[tile of digits][channel]: sum of dz, and at C2 + channel that of dz times the normalised y.
__device__ void inputs_grad(float* shared, float* dz, float* parts, const float* dh, const float* m,
                            const float* known2, const float* parameters, int batch, int block) {
  float* over = shared + 2 * STAGE;
  const int b0 = block / (C2 / 2) * TILE, pair = block % (C2 / 2), f0 = pair * 2 * W2;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, at = lane % 4;
  const int quad = threadIdx.x % 8 * 4, line = threadIdx.x / 8;
  const int m0 = warp % 4 * 16, n0 = warp / 4 * 7;
  const auto send_sums = [&](int chunk) {  // of the hidden layer's gradient
    float* a = shared + chunk % 2 * STAGE;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int b = b0 + line + 32 * i;
      send<16>(a + (line + 32 * i) * LS + quad,
               dh + (b < batch ? i64(b) * HIDDEN + chunk * CHUNK + quad : 0), b < batch);
    }
  };
  const auto send_weights = [&](int chunk) {
    float* w = shared + chunk % 2 * STAGE + TILE * LS;
    for (int n = threadIdx.x; n < CHUNK * FS / 2; n += THREADS) {
      const int f = f0 + n % (FS / 2) * 2, k = chunk * CHUNK + n / (FS / 2);
      send<8>(w + 2 * n, parameters + FC1 + (f < FLAT ? k * FLAT + f : 0), f < FLAT);
    }
  };
  float c[7][4] = {}, normal[7][2][2];  // of each c, y normalised
  u32 passed = 0;                         // and whether relu let it through, a bit
  const auto has = [&](int n, int j) {
    return (n0 + n < FTILES) & ((n0 + n) * 8 + 2 * at < 2 * W2) & (b0 + m0 + row + 8 * j < batch);
  };
  const auto place = [&](int n, int j) {
    return i64(b0 + m0 + row + 8 * j) * FLAT + f0 + (n0 + n) * 8 + 2 * at;
  };
  send_weights(0), send_weights(1);
  {
    float known[2][4];
#pragma unroll
    for (int s = 0; s < 8; ++s) known[s / 4][s % 4] = known2[s % 4 * C2 + pair * 2 + s / 4];
    static_assert(SCALE2 == 0 && SHIFT2 == C2 && MEAN2 == 2 * C2 && RSTD2 == 3 * C2, "in this order");
#pragma unroll
    for (int n = 0; n < 7; ++n)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const bool here = has(n, j);
        const float2 y = here ? *reinterpret_cast<const float2*>(m + place(n, j))
                              : make_float2(0.f, 0.f);
        normal[n][j][0] = y.x, normal[n][j][1] = y.y;
      }
#pragma unroll
    for (int n = 0; n < 7; ++n)
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const bool second = (n0 + n) * 8 + 2 * at + i >= W2;
          const auto of = [&](int k) { return second ? known[1][k] : known[0][k]; };
          float& y = normal[n][j][i];
          passed |= u32(has(n, j) & !(y * of(0) + of(1) <= 0.f)) << ((n * 2 + j) * 2 + i);
          y = (y - of(2)) * of(3);
        }
  }
  assay::await_previous_kernel();
  assay::let_next_kernel_start();
  send_sums(0), sent();
  send_sums(1), sent();
  for (int chunk = 0; chunk < HIDDEN / CHUNK; ++chunk) {
    wait_for_sent<1>();
    __syncthreads();
    const float* a = shared + chunk % 2 * STAGE;
    const float* w = a + TILE * LS;
#pragma unroll
    for (int k = 0; k < CHUNK; k += 8) {
      const float* p = a + (m0 + row) * LS + k + at;
      const float left[4] = {tf32(p[0]), tf32(p[8 * LS]), tf32(p[4]), tf32(p[8 * LS + 4])};
#pragma unroll
      for (int n = 0; n < 7; ++n)
        if (n + 7 < FTILES || n0 == 0) {  // a branch at the last alone
          const float* q = w + (k + at) * FS + (n0 + n) * 8 + row;
          mma8(c[n], left[0], left[1], left[2], left[3], tf32(q[0]), tf32(q[4 * FS]));
        }
    }
    __syncthreads();
    if (chunk + 2 < HIDDEN / CHUNK) send_weights(chunk + 2), send_sums(chunk + 2);
    sent();
  }
  float sum[2] = {}, product[2] = {};  // of the two channels
#pragma unroll
  for (int n = 0; n < 7; ++n) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float g[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int second = (n0 + n) * 8 + 2 * at + i >= W2;
        g[i] = passed >> ((n * 2 + j) * 2 + i) & 1u ? c[n][2 * j + i] : 0.f;
#pragma unroll
        for (int s = 0; s < 2; ++s) {
          sum[s] += second == s ? g[i] : 0.f;
          product[s] += second == s ? g[i] * normal[n][j][i] : 0.f;
        }
      }
      if (has(n, j)) *reinterpret_cast<float2*>(dz + place(n, j)) = make_float2(g[0], g[1]);
    }
  }
#pragma unroll
  for (int s = 0; s < 2; ++s) {
    sum[s] = over_warp(sum[s]);
    product[s] = over_warp(product[s]);
  }
  if (lane < 4) {  // every lane has all four
    const float mine[4] = {sum[0], sum[1], product[0], product[1]};
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (lane == i) over[warp * 4 + i] = mine[i];
  }
  __syncthreads();
  if (threadIdx.x < 4) {
    float total = 0.f;
    for (int i = 0; i < WARPS; ++i) total += over[i * 4 + threadIdx.x];
    const int s = threadIdx.x % 2, kind = threadIdx.x / 2;
    parts[i64(block / (C2 / 2)) * 64 + kind * C2 + pair * 2 + s] = total;
  }
}

// parts[part][o][f] = sum over the digits of the part of dh[o] relu(batchnorm(m))[f], of 32 features.
__device__ void weights_grad(float* shared, float* parts, const float* dh, const float* m,
                             const float* known2, int batch, int block, int splits) {
  float *d = shared, *a = shared + CHUNK * HS;
  const int f0 = block % CHUNKS * CHUNK, part = block / CHUNKS;
  const int chunks = (batch + CHUNK - 1) / CHUNK;
  const int first = i64(part) * chunks / splits, last = i64(part + 1) * chunks / splits;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, at = lane % 4;
  const int quad = threadIdx.x % 8 * 4, line = threadIdx.x / 8;
  float scale[4], shift[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int channel = (f0 + quad + i) / W2;
    scale[i] = known2[SCALE2 + channel], shift[i] = known2[SHIFT2 + channel];
  }
  float4 ours, grad[4];
  const float4 none = make_float4(0.f, 0.f, 0.f, 0.f);
  const auto fetch_features = [&](int chunk) {
    const int b = chunk * CHUNK + line;
    ours = b < batch ? *reinterpret_cast<const float4*>(m + i64(b) * FLAT + f0 + quad) : none;
  };
  const auto fetch = [&](int chunk) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int b = chunk * CHUNK + warp + 8 * i;  // a warp a line of 128
      grad[i] = b < batch ? reinterpret_cast<const float4*>(dh + i64(b) * HIDDEN)[lane] : none;
    }
  };
  float c[4][4] = {};
  if (first < last) fetch_features(first);
  assay::await_previous_kernel();
  assay::let_next_kernel_start();
  if (first < last) fetch(first);
  for (int chunk = first; chunk < last; ++chunk) {
    const auto z = [&](float v, int i) { return tf32(relu(v * scale[i] + shift[i])); };
    *reinterpret_cast<float4*>(a + line * VS + quad) =
        make_float4(z(ours.x, 0), z(ours.y, 1), z(ours.z, 2), z(ours.w, 3));
#pragma unroll
    for (int i = 0; i < 4; ++i)
      *reinterpret_cast<float4*>(d + (warp + 8 * i) * HS + 4 * lane) =
          make_float4(tf32(grad[i].x), tf32(grad[i].y), tf32(grad[i].z), tf32(grad[i].w));
    __syncthreads();
    if (chunk + 1 < last) fetch(chunk + 1), fetch_features(chunk + 1);
#pragma unroll
    for (int k = 0; k < CHUNK; k += 8) {
      const float* p = d + (k + at) * HS + warp * 16 + row;
      const float left[4] = {p[0], p[8], p[4 * HS], p[4 * HS + 8]};
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const float* q = a + (k + at) * VS + 8 * n + row;
        mma8(c[n], left[0], left[1], left[2], left[3], q[0], q[4 * VS]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int n = 0; n < 4; ++n)
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float* to = parts + (i64(part) * HIDDEN + warp * 16 + row + 8 * j) * FLAT + f0 + 8 * n + 2 * at;
      *reinterpret_cast<float2*>(to) = make_float2(c[n][2 * j], c[n][2 * j + 1]);
    }
}

// grid: tiles of digits x 16 blocks of `inputs_grad`, then 49 x splits of `weights_grad`. The count
// of steps goes up by `advance`, and the kernels after this one subtract it again.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    hidden_grad(float* dz, float* parts2, float* weights, int* step, int advance, const float* dh,
                const float* m, const float* known2, const float* parameters, int batch, int inputs,
                int splits) {
  __shared__ __align__(16) float shared[2 * STAGE + 4 * WARPS];
  static_assert(CHUNK * (HS + VS) <= 2 * STAGE, "both kinds of blocks fit");
  const int block = blockIdx.x;
  if (block < inputs)
    inputs_grad(shared, dz, parts2, dh, m, known2, parameters, batch, block);
  else
    weights_grad(shared, weights, dh, m, known2, batch, block - inputs, splits);
  if (block == 0 && threadIdx.x == 0) *step += advance;  // `head`, which reads it, has ended
}
