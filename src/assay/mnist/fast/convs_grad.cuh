// Both blocks of convolutions backward, digit by digit, from the digit itself: everything between is
// computed again instead of stored.
//
// With normal = (y - mean) rstd, dy = scale (dz - dbeta / N - normal dgamma / N) of all pixels, where
// dz is not zero at pooled winners alone. The sums over the batch, dbeta and dgamma, are known for
// the second block. For the first they are not yet, and need not be: see `finish`.
#pragma once

#include "head_grad.cuh"

constexpr int DSTEPS = C2 * TAPS / 8;       // steps of eight (tap, output) of the gradient of a
constexpr int Q0 = 16, QTILES = 27;         // pixels of a plane, its border included: 16 to 231
constexpr int ZS = 204;                     // of dz1: 12 modulo 32
constexpr int KTILES = 2 * TAPS, KEACH = 5; // tiles of weights: (tap, half of channels); of a warp
constexpr int D1 = 16 * 16;                 // row of partial sums of the first convolution

// Where weight (o, c, tap) is in the fragments that the gradient of a reads: [step][lane][4].
__device__ __forceinline__ int backward_at(int o, int c, int tap) {
  const int lane = c % 8 * 4 + o % 4, part = c / 8 + o % 8 / 4 * 2;
  return ((tap * 4 + o / 8) * 32 + lane) * 4 + part;
}

struct ConvsShared {
  float weights[C2 * K2], turned[C2 * K2];
  float a[C1 * PS], dy[C2 * PS], dz[C1 * ZS];
  float x[XSIZE], known[64], to_dy[3 * C2], scratch[16 * 64];
  double sums[64];
  unsigned char chosen[C1 * W1];
};

// dy of the second convolution of one digit, from its y and the dz of its pooled winners.
__device__ __forceinline__ void put_dy(ConvsShared& s, const SecondConv& second,
                                       const float (&y)[EACH][2][4], const float* dz,
                                       const float (&sign)[2]) {
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int window = second.window(e);
    if (window >= W2) continue;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int o = second.tile * 16 + second.row + i * 8;
      const float v[4] = {y[e][0][2 * i], y[e][0][2 * i + 1], y[e][1][2 * i], y[e][1][2 * i + 1]};
      float best;
      const int found = winner(v, sign[i], best);
      const float g = s.to_dy[o] * dz[o * W2 + window];
      float* to = s.dy + o * PS + at_pixel(window / P2 * 2, window % P2 * 2);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const float rest = s.to_dy[C2 + o] * v[n] + s.to_dy[2 * C2 + o];
        to[n / 2 * RS + n % 2] = tf32((n == found ? g : 0.f) - rest);
      }
    }
  }
}

// dz of the first block's pooled winners: the gradient of a where relu passed.
__device__ __forceinline__ void put_dz(ConvsShared& s) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, at = lane % 4;
  float c[4][4] = {};
  const float4* fragment = reinterpret_cast<const float4*>(s.turned) + lane;
  const float* from = s.dy + at * PS + Q0 + warp * 8 + row;
#pragma unroll 4
  for (int o = 0; o < C2 / 8; ++o)
#pragma unroll
    for (int tap = 0; tap < TAPS; ++tap) {
      const float4 k = fragment[(tap * 4 + o) * 32];
      const float* p = from + o * 8 * PS - (tap / 3 - 1) * RS - (tap % 3 - 1);
#pragma unroll
      for (int n = 0; n < 4; ++n)
        if (n < 3 || warp + 8 * n < QTILES)
          mma8(c[n], k.x, k.y, k.z, k.w, p[64 * n], p[64 * n + 4 * PS]);
    }
#pragma unroll
  for (int n = 0; n < 4; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int q = Q0 + (warp + 8 * n) * 8 + 2 * at + i % 2, channel = row + i / 2 * 8;
      const int r = q / RS - 1, column = q % RS - 1;
      if (column < 0 || r >= P1) continue;
      s.dz[channel * ZS + r * P1 + column] =
          s.a[channel * PS + q] > 0.f ? tf32(c[n][i]) : 0.f;
    }
}

// c += dy a of shifted planes: the gradient of the second convolution's weights, for this warp's
// tiles. Of eight pixels k counts the even ones first; lanes of rows 4 to 7 read the odd ones before
// the even ones, so that no two rows meet in a bank.
__device__ __forceinline__ void add_weights_grad(float (&c)[KEACH][4], const ConvsShared& s) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, at = lane % 4;
  const int tile = warp % 2, group = warp / 2, odd = lane / 16;
  const float* left = s.dy + (tile * 16 + row) * PS + Q0 + 2 * at;
  const float* right[KEACH];
#pragma unroll
  for (int n = 0; n < KEACH; ++n) {
    const int k = min(group + 4 * n, KTILES - 1), tap = k / 2;
    right[n] = s.a + (k % 2 * 8 + row) * PS + Q0 + 2 * at + (tap / 3 - 1) * RS + tap % 3 - 1;
  }
#pragma unroll 3
  for (int q = 0; q < QTILES * 8; q += 8) {
    const float2 upper = *reinterpret_cast<const float2*>(left + q);
    const float2 lower = *reinterpret_cast<const float2*>(left + q + 8 * PS);
#pragma unroll
    for (int n = 0; n < KEACH; ++n)
      if (n + 1 < KEACH || group + 4 * n < KTILES) {
        const float one = right[n][q + odd], other = right[n][q + 1 - odd];
        mma8(c[n], upper.x, lower.x, upper.y, lower.y, odd ? other : one, odd ? one : other);
      }
  }
}

// c += dz at the chosen pixels times the patch around them and a 1: rows channels, columns taps.
__device__ __forceinline__ void add_first_grad(float (&c)[2][4], const ConvsShared& s) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, at = lane % 4;
  const int tap = tap_in_image(row), last = tap_in_image(8), corner = at / 2 * XS + at % 2;
#pragma unroll 2
  for (int two = warp; two < W1 / 2; two += WARPS) {  // two windows, of four pixels each
    float left[4], right[2][2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int w = 2 * two + half;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int channel = row + i * 8;
        left[half * 2 + i] = s.chosen[channel * W1 + w] == at ? s.dz[channel * ZS + w] : 0.f;
      }
      const float* p = s.x + w / P1 * 2 * XS + w % P1 * 2 + corner;
      right[half][0] = p[tap];
      right[half][1] = row == 0 ? p[last] : row == 1 ? 1.f : 0.f;
    }
#pragma unroll
    for (int t = 0; t < 2; ++t)
      mma8(c[t], left[0], left[1], left[2], left[3], right[0][t], right[1][t]);
  }
}

// parts_k[block]: the second convolution's weights' gradient of this block's digits, as fragments
// [tile][tile of weights][4][lane]. parts_1[block]: for each channel of the first the sums of dz
// times its patch, and of dz. sums2: dbeta and dgamma of the second batchnorm, from parts2.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    convs_grad(float* parts_k, float* parts_1, float* sums2, const float* dz, const float* parts2,
               int rows, const float* known1, const float* known2, const float* parameters,
               const unsigned char* images, const i64* order, const int* step, int advance,
               int batch) {
  extern __shared__ __align__(16) unsigned char memory[];
  ConvsShared& s = *reinterpret_cast<ConvsShared*>(memory);
  const Digits digits{images, nullptr, order, *step - advance, batch};
  u32 word = digits.word(blockIdx.x);
  sum_rows<64>(s.sums, s.scratch, parts2, rows);
  if (threadIdx.x < C2) {
    const int c = threadIdx.x;
    const float count = float(batch) * W1, scale = known2[SCALE2 + c];
    const float middle = float(s.sums[c]) / count, slope = float(s.sums[C2 + c]) / count;
    s.to_dy[c] = scale;
    s.to_dy[C2 + c] = scale * slope * known2[RSTD2 + c];
    s.to_dy[2 * C2 + c] = scale * (middle - slope * known2[RSTD2 + c] * known2[MEAN2 + c]);
  }
  if (blockIdx.x == 0 && threadIdx.x < 64) sums2[threadIdx.x] = float(s.sums[threadIdx.x]);
  if (threadIdx.x < 64) s.known[threadIdx.x] = known1[threadIdx.x];
  for (int i = threadIdx.x; i < C2 * K2; i += THREADS) {
    const float w = tf32(parameters[CONV2 + i]);
    const int o = i / K2, c = i % K2 / TAPS, tap = i % TAPS;
    s.weights[forward_at(o, c, tap)] = w;
    s.turned[backward_at(o, c, tap)] = w;
  }
  clear(s.x, XSIZE);
  clear(s.a, C1 * PS);
  clear(s.dy, C2 * PS);
  __syncthreads();
  const FirstConv first(parameters, s.known);
  const SecondConv second;
  float sign[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    sign[i] = sign_of(parameters[BN2_W + second.tile * 16 + second.row + i * 8]);
  float ck[KEACH][4] = {}, c1[2][4] = {};
  for (int b = blockIdx.x; b < batch; b += gridDim.x) {
    __syncthreads();
    put_word(s.x, word);
    __syncthreads();
    word = digits.word(b + gridDim.x);
    first.run<true>(s.a, s.chosen, s.x);
    __syncthreads();
    {
      float y[EACH][2][4];
      second.run(y, s.weights, s.a);
      put_dy(s, second, y, dz + i64(b) * FLAT, sign);
    }
    __syncthreads();
    put_dz(s);
    add_weights_grad(ck, s);
    __syncthreads();
    add_first_grad(c1, s);
  }
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, at = lane % 4;
  float* out = parts_k + i64(blockIdx.x) * C2 * K2;
#pragma unroll
  for (int n = 0; n < KEACH; ++n) {
    const int k = warp / 2 + 4 * n;
    if (k >= KTILES) continue;
#pragma unroll
    for (int i = 0; i < 4; ++i) out[((warp % 2 * KTILES + k) * 4 + i) * 32 + lane] = ck[n][i];
  }
  __syncthreads();
  float* over = s.turned;  // [warp][16][16]
#pragma unroll
  for (int i = 0; i < 8; ++i)
    over[(warp * 16 + row + i % 4 / 2 * 8) * 16 + i / 4 * 8 + 2 * at + i % 2] = c1[i / 4][i % 4];
  __syncthreads();
  float sum = 0.f;
#pragma unroll
  for (int w = 0; w < WARPS; ++w) sum += over[w * D1 + threadIdx.x];
  parts_1[i64(blockIdx.x) * D1 + threadIdx.x] = sum;
}
