// Gradients of linear 1568 -> 128: of its inputs through relu and into the second batchnorm's sums,
// and of its weights in parts of the batch. Two kinds of blocks share one launch.
#pragma once

#include "head.cuh"

constexpr int FS = 104, FTILES = 13;  // two channels are 98 features, 13 tiles of 8; 8 modulo 32
constexpr int HS = HIDDEN + 8, VS = CHUNK + 8;

// dz[digit][f] = (dh w1)[f] where relu passed, of TILE digits and the features of two channels.
// parts[tile of digits][channel]: sum of dz, and at C2 + channel that of dz times the normalised y.
__device__ void inputs_grad(float* shared, float* dz, float* parts, const float* dh, const float* m,
                            const float* known2, const float* parameters, int batch, int block) {
  float *a = shared, *w = shared + TILE * LS, *over = w + CHUNK * FS;
  const int b0 = block / (C2 / 2) * TILE, pair = block % (C2 / 2), f0 = pair * 2 * W2;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, at = lane % 4;
  const int quad = threadIdx.x % 8 * 4, line = threadIdx.x / 8;
  const int m0 = warp % 4 * 16, n0 = warp / 4 * 7;
  constexpr int TWOS = CHUNK * FS / 2, PER = (TWOS + THREADS - 1) / THREADS;
  float4 ours[2];
  float2 weight[PER];
  const auto fetch = [&](int k) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int b = b0 + line + 32 * i;
      ours[i] = b < batch ? *reinterpret_cast<const float4*>(dh + i64(b) * HIDDEN + k + quad)
                          : make_float4(0.f, 0.f, 0.f, 0.f);
    }
  };
  const auto fetch_weights = [&](int k) {
#pragma unroll
    for (int i = 0; i < PER; ++i) {
      const int n = threadIdx.x + i * THREADS, f = f0 + n % (FS / 2) * 2;
      weight[i] = n < TWOS && f < FLAT ? *reinterpret_cast<const float2*>(
                                             parameters + FC1 + (k + n / (FS / 2)) * FLAT + f)
                                       : make_float2(0.f, 0.f);
    }
  };
  float c[7][4] = {};
  fetch_weights(0);
  wait_for_the_last();
  let_the_next_start();
  fetch(0);
  for (int k0 = 0; k0 < HIDDEN; k0 += CHUNK) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      *reinterpret_cast<float4*>(a + (line + 32 * i) * LS + quad) =
          make_float4(tf32(ours[i].x), tf32(ours[i].y), tf32(ours[i].z), tf32(ours[i].w));
#pragma unroll
    for (int i = 0; i < PER; ++i) {
      const int n = threadIdx.x + i * THREADS;
      if (n < TWOS)
        *reinterpret_cast<float2*>(w + 2 * n) = make_float2(tf32(weight[i].x), tf32(weight[i].y));
    }
    __syncthreads();
    if (k0 + CHUNK < HIDDEN) fetch(k0 + CHUNK), fetch_weights(k0 + CHUNK);
#pragma unroll
    for (int k = 0; k < CHUNK; k += 8) {
      const float* p = a + (m0 + row) * LS + k + at;
      const float left[4] = {p[0], p[8 * LS], p[4], p[8 * LS + 4]};
#pragma unroll
      for (int n = 0; n < 7; ++n)
        if (n0 + n < FTILES) {
          const float* q = w + (k + at) * FS + (n0 + n) * 8 + row;
          mma8(c[n], left[0], left[1], left[2], left[3], q[0], q[4 * FS]);
        }
    }
    __syncthreads();
  }
  float sum[2] = {}, product[2] = {};  // of the two channels
#pragma unroll
  for (int n = 0; n < 7; ++n) {
    const int f = (n0 + n) * 8 + 2 * at;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int b = b0 + m0 + row + 8 * j;
      if (n0 + n >= FTILES || f >= 2 * W2 || b >= batch) continue;
      const i64 to = i64(b) * FLAT + f0 + f;
      const float2 v = *reinterpret_cast<const float2*>(m + to);
      float g[2] = {c[n][2 * j], c[n][2 * j + 1]};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int second = f + i >= W2, channel = pair * 2 + second;
        const float y = i ? v.y : v.x;
        if (y * known2[SCALE2 + channel] + known2[SHIFT2 + channel] <= 0.f) g[i] = 0.f;
        const float normal = (y - known2[MEAN2 + channel]) * known2[RSTD2 + channel];
#pragma unroll
        for (int s = 0; s < 2; ++s) {
          sum[s] += second == s ? g[i] : 0.f;
          product[s] += second == s ? g[i] * normal : 0.f;
        }
      }
      *reinterpret_cast<float2*>(dz + to) = make_float2(g[0], g[1]);
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
  wait_for_the_last();
  let_the_next_start();
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
extern "C" __global__ void __launch_bounds__(THREADS)
    hidden_grad(float* dz, float* parts2, float* weights, int* step, int advance, const float* dh,
                const float* m, const float* known2, const float* parameters, int batch, int inputs,
                int splits) {
  __shared__ __align__(16) float shared[TILE * LS + CHUNK * FS + 64];
  static_assert(CHUNK * (HS + VS) <= TILE * LS + CHUNK * FS, "both kinds of blocks fit");
  const int block = blockIdx.x;
  if (block < inputs)
    inputs_grad(shared, dz, parts2, dh, m, known2, parameters, batch, block);
  else
    weights_grad(shared, weights, dh, m, known2, batch, block - inputs, splits);
  if (block == 0 && threadIdx.x == 0) *step += advance;  // `head`, which reads it, has ended
}
