// The head: linear 1568 -> 128 in parts of its sum, then relu, linear 10, cross-entropy and their
// gradients, a warp a digit.
#pragma once

#include "second.cuh"

constexpr int TILE = 64;    // digits of a block of `hidden`
constexpr int CHUNK = 32;   // features, or digits, of a stage
constexpr int CHUNKS = FLAT / CHUNK;  // 49
constexpr int LS = CHUNK + 4;         // floats of a row: 4 modulo 32 banks

// out[part][digit][o] = sum over the features of the part of relu(batchnorm(m)) w1[o]. grid: tiles
// of digits, parts. The sums of the second batchnorm become known2 here.
extern "C" __global__ void __launch_bounds__(THREADS)
    hidden(float* out, float* known2, const float* m, const float* parts2, int rows,
           const float* parameters, int batch) {
  __shared__ __align__(16) float a[TILE * LS], w[HIDDEN * LS];
  __shared__ float known[KNOWN2];
  __shared__ double sums[64];
  const int first = i64(blockIdx.y) * CHUNKS / gridDim.y;
  const int last = i64(blockIdx.y + 1) * CHUNKS / gridDim.y;
  const int b0 = blockIdx.x * TILE;
  const int quad = threadIdx.x % 8 * 4, line = threadIdx.x / 8;  // of a chunk: 8 fours, 32 lines
  float4 ours[2], weight[4];
  const auto fetch_weights = [&](int chunk) {
    const int f = chunk * CHUNK + quad;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      weight[i] = *reinterpret_cast<const float4*>(parameters + FC1 + (line + 32 * i) * FLAT + f);
  };
  const auto fetch = [&](int chunk) {
    const int f = chunk * CHUNK + quad;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int b = b0 + line + 32 * i;
      ours[i] = b < batch ? *reinterpret_cast<const float4*>(m + i64(b) * FLAT + f)
                          : make_float4(0.f, 0.f, 0.f, 0.f);
    }
  };
  fetch_weights(first);
  assay::await_previous_kernel();
  assay::let_next_kernel_start();
  fetch(first);
  second_statistics(known, sums, w, parts2, rows, parameters, batch);
  if (blockIdx.x + blockIdx.y == 0 && threadIdx.x < KNOWN2)
    known2[threadIdx.x] = known[threadIdx.x];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, at = lane % 4;
  const int m0 = warp % 2 * 32, n0 = warp / 2 * 32;
  float c[2][4][4] = {};
  for (int chunk = first; chunk < last; ++chunk) {
    const int f = chunk * CHUNK + quad;
    const auto z = [&](float v, int i) {
      const int channel = (f + i) / W2;
      return tf32(relu(v * known[SCALE2 + channel] + known[SHIFT2 + channel]));
    };
#pragma unroll
    for (int i = 0; i < 2; ++i)
      *reinterpret_cast<float4*>(a + (line + 32 * i) * LS + quad) =
          make_float4(z(ours[i].x, 0), z(ours[i].y, 1), z(ours[i].z, 2), z(ours[i].w, 3));
#pragma unroll
    for (int i = 0; i < 4; ++i)
      *reinterpret_cast<float4*>(w + (line + 32 * i) * LS + quad) = make_float4(
          tf32(weight[i].x), tf32(weight[i].y), tf32(weight[i].z), tf32(weight[i].w));
    __syncthreads();
    if (chunk + 1 < last) fetch(chunk + 1), fetch_weights(chunk + 1);
#pragma unroll
    for (int k = 0; k < CHUNK; k += 8) {
      float left[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          left[i][j] = a[(m0 + 16 * i + row + j % 2 * 8) * LS + k + at + j / 2 * 4];
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const float* p = w + (n0 + 8 * n + row) * LS + k + at;
        const float b0 = p[0], b1 = p[4];
#pragma unroll
        for (int i = 0; i < 2; ++i)
          mma8(c[i][n], left[i][0], left[i][1], left[i][2], left[i][3], b0, b1);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int b = b0 + m0 + 16 * i + row + 8 * j;
        if (b >= batch) continue;
        float* to = out + (i64(blockIdx.y) * batch + b) * HIDDEN + n0 + 8 * n + 2 * at;
        *reinterpret_cast<float2*>(to) = make_float2(c[i][n][2 * j], c[i][n][2 * j + 1]);
      }
}

// A row of `parts` of `head`: gradients of w2 (10 x 128), of its bias, of the bias before, the loss.
constexpr int HEAD_BIAS2 = CLASSES * HIDDEN, HEAD_BIAS1 = HEAD_BIAS2 + CLASSES;
constexpr int HEAD_LOSS = HEAD_BIAS1 + HIDDEN, HEAD = 1424;

// From the parts of the hidden sums: logits (batch x 10), and if `train` the gradient dh of the
// hidden sums (batch x 128) and this block's row of parts.
// smooth: share of the label's probability that is spread over all classes.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    head(float* logits, float* dh, float* parts, const int* step, const float* sums, int splits,
         const float* parameters, const unsigned char* labels, const i64* order, int batch,
         float smooth, int train) {
  __shared__ __align__(16) float over[WARPS][HEAD];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Digits digits{nullptr, labels, order, *step, batch};
  float dw[CLASSES][4] = {}, dbias2 = 0.f, dbias1[4] = {}, loss = 0.f;
  const auto four = [&](float (&to)[4], const float* from) {
    const float4 v = reinterpret_cast<const float4*>(from)[lane];
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  };
  float4* weights = reinterpret_cast<float4*>(over);  // [class][lane], until `over` is filled
  for (int i = threadIdx.x; i < CLASSES * HIDDEN / 4; i += THREADS)
    weights[i] = reinterpret_cast<const float4*>(parameters + FC2)[i];
  float bias[4];
  four(bias, parameters + FC1_BIAS);
  const float bias2 = lane < CLASSES ? parameters[FC2_BIAS + lane] : 0.f;
  const auto label_of = [&](int b) { return b < batch ? int(labels[digits.at(b)]) : 0; };
  int b = blockIdx.x * WARPS + warp, next = label_of(b);
  __syncthreads();
  assay::await_previous_kernel();
  assay::let_next_kernel_start();
  for (; b < batch; b += gridDim.x * WARPS) {
    const int label = next;
    const float4 v = sum_fours<8>(sums + i64(b) * HIDDEN + 4 * lane, i64(batch) * HIDDEN, splits);
    next = label_of(b + gridDim.x * WARPS);
    const float h[4] = {relu(bias[0] + v.x), relu(bias[1] + v.y), relu(bias[2] + v.z),
                        relu(bias[3] + v.w)};
    float x[CLASSES], most = __int_as_float(0xff800000), sum = 0.f, all = 0.f;
#pragma unroll
    for (int j = 0; j < CLASSES; ++j) {
      const float4 w = weights[j * 32 + lane];
      x[j] = h[0] * w.x + h[1] * w.y + h[2] * w.z + h[3] * w.w;
      x[j] = over_warp(x[j] + (lane == j ? bias2 : 0.f));
      most = fmaxf(most, x[j]);
    }
    float own = 0.f;
#pragma unroll
    for (int j = 0; j < CLASSES; ++j) own = lane == j ? x[j] : own;
    if (lane < CLASSES) logits[i64(b) * CLASSES + lane] = own;
    if (!train) continue;
    float at_label = 0.f;
#pragma unroll
    for (int j = 0; j < CLASSES; ++j) {
      const float v = x[j] - most;
      if (j == label) at_label = v;
      all += v;
      x[j] = expf(v);
      sum += x[j];
    }
    const float log_sum = logf(sum), mean = all / CLASSES;
    loss += log_sum - (1.f - smooth) * at_label - smooth * mean;
    float d[4] = {};
#pragma unroll
    for (int j = 0; j < CLASSES; ++j) {
      const float aim = (j == label ? 1.f - smooth : 0.f) + smooth / CLASSES;
      const float g = (x[j] / sum - aim) / float(batch);
      dbias2 += lane == j ? g : 0.f;
      const float4 w = weights[j * 32 + lane];
      d[0] += g * w.x, d[1] += g * w.y, d[2] += g * w.z, d[3] += g * w.w;
#pragma unroll
      for (int i = 0; i < 4; ++i) dw[j][i] += g * h[i];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      d[i] = h[i] <= 0.f ? 0.f : d[i];
      dbias1[i] += d[i];
    }
    reinterpret_cast<float4*>(dh + i64(b) * HIDDEN)[lane] = make_float4(d[0], d[1], d[2], d[3]);
  }
  if (!train) return;
  __syncthreads();  // all have read the weights
  if (lane < CLASSES) over[warp][HEAD_BIAS2 + lane] = dbias2;
#pragma unroll
  for (int j = 0; j < CLASSES; ++j)
    reinterpret_cast<float4*>(over[warp])[j * 32 + lane] =
        make_float4(dw[j][0], dw[j][1], dw[j][2], dw[j][3]);
#pragma unroll
  for (int i = 0; i < 4; ++i) over[warp][HEAD_BIAS1 + 4 * lane + i] = dbias1[i];
  if (lane < HEAD - HEAD_LOSS) over[warp][HEAD_LOSS + lane] = lane == 0 ? loss / float(batch) : 0.f;
  __syncthreads();
  for (int i = threadIdx.x; i < HEAD; i += THREADS) {
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < WARPS; ++k) sum += over[k][i];
    parts[i64(blockIdx.x) * HEAD + i] = sum;
  }
}
