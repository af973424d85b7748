// Both blocks of convolutions backward, digit by digit, from the digit itself: everything between is
// computed again instead of stored.
//
// With normal = (y - mean) rstd, dy = scale (dz - dbeta / N - normal dgamma / N) of all pixels, where
// dz is not zero at pooled winners alone. The sums over the batch, dbeta and dgamma, are known for
// the second block. For the first they are not yet, and need not be: see `finish`.
#pragma once

#include "head_grad.cuh"

constexpr int ZS = 200;                // of dz1: 8 modulo 32
constexpr int KTILES = 2 * TAPS;       // tiles of weights: (tap, half of channels)
constexpr int ROWS = P1 / 2;           // rows of pixels of a warp in `FirstGrad`
constexpr int D1 = 16 * 16;            // row of partial sums of the first convolution

// The fragments that the gradient of a reads, of staged weights: [tap][eight outputs][lane][4].
__device__ __forceinline__ void put_turned(float* turned, const float* stage) {
  for (int i = threadIdx.x; i < C2 * K2 / 4; i += THREADS) {
    const int lane = i % 32, eight = i / 32 % 4, tap = i / 128;
    const float* w = stage + (eight * 8 + lane % 4) * OS + lane / 4 * TAPS + tap;
    reinterpret_cast<float4*>(turned)[i] =
        make_float4(w[0], w[8 * TAPS], w[4 * OS], w[4 * OS + 8 * TAPS]);
  }
}

struct ConvsShared {
  float weights[C2 * K2], turned[C2 * K2];
  float a[C1 * PS], dy[C2 * PS], dz[C1 * ZS];
  float x[XSIZE], values[VALUES], known[64], to_dy[3 * C2];
  double sums[64];
  i64 image;             // of the digit after the next
  u32 word[PIXELS / 4];  // of the next digit; each thread sends and reads its own
  unsigned char chosen[C1 * W1];
};
static_assert(sizeof(ConvsShared) == 111736, "as step.CONVS_SHARED says; two fit a multiprocessor");

// dy = to_dy[0] dz - (to_dy[1] y + to_dy[2]), each for all channels, from the sums of dz and dz normal.
struct ToDy {
  float scale, mean, rstd;  // of channel threadIdx.x % C2

  __device__ __forceinline__ explicit ToDy(const float* known2) {
    const int c = threadIdx.x % C2;
    scale = known2[SCALE2 + c], mean = known2[MEAN2 + c], rstd = known2[RSTD2 + c];
  }
  __device__ __forceinline__ void put(float* to_dy, const double* sums, int batch) const {
    if (threadIdx.x >= C2) return;
    const int c = threadIdx.x;
    const float count = float(batch) * W1;
    const float middle = float(sums[c]) / count, slope = float(sums[C2 + c]) / count;
    to_dy[c] = scale;
    to_dy[C2 + c] = scale * slope * rstd;
    to_dy[2 * C2 + c] = scale * (middle - slope * rstd * mean);
  }
};

// dy of the second convolution of one digit, from its y and the dz of its pooled winners, which lie in
// s.dz until those of the first block do.
__device__ __forceinline__ void put_dy(ConvsShared& s, const SecondConv& second,
                                       const float (&y)[EACH][2][4], const float (&sign)[2]) {
  float scale[2], slope[2], middle[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float* to_dy = s.to_dy + second.tile * 16 + second.row + i * 8;
    scale[i] = to_dy[0], slope[i] = to_dy[C2], middle[i] = to_dy[2 * C2];
  }
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    if (!second.has(e)) continue;
    const int line = second.top + e, window = line * P2 + second.column();
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int o = second.tile * 16 + second.row + i * 8;
      const float v[4] = {y[e][0][2 * i], y[e][0][2 * i + 1], y[e][1][2 * i], y[e][1][2 * i + 1]};
      float best;
      const int found = winner(v, sign[i], best);
      const float g = scale[i] * s.dz[o * W2 + window];
      float* to = s.dy + o * PS + at_pixel(2 * line, 2 * second.column());
      float d[4];
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const float rest = slope[i] * v[n] + middle[i];
        d[n] = tf32((n == found ? g : 0.f) - rest);
      }
      *reinterpret_cast<float2*>(to) = make_float2(d[0], d[1]);
      *reinterpret_cast<float2*>(to + RS) = make_float2(d[2], d[3]);
    }
  }
}

// c: dz of the first block's pooled winners before relu, from half of the outputs of the second. A
// warp has half a row of pixels and those of the rows below: a row of dy is read once for the three
// taps above one another.
struct FirstGrad {
  int row, at, half, top, part;

  __device__ FirstGrad() {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    row = lane / 4, at = lane % 4, half = warp % 2, top = warp / 2 % 2 * ROWS, part = warp / 4;
  }
  __device__ __forceinline__ void run(float (&c)[ROWS][4], const ConvsShared& s) const {
#pragma unroll
    for (int i = 0; i < ROWS * 4; ++i) c[i / 4][i % 4] = 0.f;
    const float4* fragment = reinterpret_cast<const float4*>(s.turned) + threadIdx.x % 32;
    const float* from = s.dy + at * PS + at_pixel(top - 1, 8 * half + 1) + row;
#pragma unroll 1
    for (int o = 2 * part; o < 2 * part + 2; ++o)
#pragma unroll
      for (int column = 0; column < 3; ++column) {
        float4 k[3];
#pragma unroll
        for (int r = 0; r < 3; ++r) k[r] = fragment[((r * 3 + column) * 4 + o) * 32];
        const float* p = from + o * 8 * PS - column;
#pragma unroll
        for (int line = 0; line < ROWS + 2; ++line) {
          const float b0 = p[line * RS], b1 = p[line * RS + 4 * PS];
#pragma unroll
          for (int r = 0; r < 3; ++r) {
            const int out = line + r - 2;  // a pixel's tap r is at the output r - 1 above it
            if (out < 0 || out >= ROWS) continue;
            mma8(c[out], k[r].x, k[r].y, k[r].z, k[r].w, b0, b1);
          }
        }
      }
  }
  // dz of this thread's pixels: put by the second part, then added by the first, where relu passed.
  template <bool ADD>
  __device__ __forceinline__ void put(ConvsShared& s, const float (&c)[ROWS][4]) const {
    const int column = 8 * half + 2 * at;
    if (column >= P1) return;
#pragma unroll
    for (int n = 0; n < ROWS; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int channel = row + i * 8;
        float2* to = reinterpret_cast<float2*>(s.dz + channel * ZS + (top + n) * P1 + column);
        float2 v = make_float2(c[n][2 * i], c[n][2 * i + 1]);
        if (ADD) {
          const float2 other = *to, a = *reinterpret_cast<const float2*>(
                                        s.a + channel * PS + at_pixel(top + n, column));
          v.x = a.x > 0.f ? tf32(v.x + other.x) : 0.f;
          v.y = a.y > 0.f ? tf32(v.y + other.y) : 0.f;
        }
        *to = v;
      }
  }
};

// c[tap] += dy a of shifted planes: the gradient of the second convolution's weights, of a warp's 16
// outputs, 8 channels and half of the pixels. k counts the even ones of eight pixels first. Row j of
// a meets the rows j - 1, j and j + 1 of dy. Of the pixels beside a pair, lanes of rows 4 to 7 read
// the right one first, so that no two rows meet in a bank.
__device__ __forceinline__ void add_weights_grad(float (&c)[TAPS][4], const ConvsShared& s) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, at = lane % 4;
  const int tile = warp % 2, eight = warp / 2 % 2, half = warp / 4;
  const bool odd = lane / 16;
  const int pixel = at_pixel(0, 8 * half) + 2 * at;
  const float* left = s.dy + (tile * 16 + row) * PS + pixel;
  const float* right = s.a + (eight * 8 + row) * PS + pixel;
  float2 upper[3], lower[3];
  upper[0] = *reinterpret_cast<const float2*>(left);
  lower[0] = *reinterpret_cast<const float2*>(left + 8 * PS);
#pragma unroll
  for (int j = 0; j < P1; ++j) {
    if (j + 1 < P1) {
      upper[(j + 1) % 3] = *reinterpret_cast<const float2*>(left + (j + 1) * RS);
      lower[(j + 1) % 3] = *reinterpret_cast<const float2*>(left + (j + 1) * RS + 8 * PS);
    }
    const float* p = right + j * RS;
    const float2 both = *reinterpret_cast<const float2*>(p);
    const float one = p[odd ? 2 : -1], other = p[odd ? -1 : 2];
    const float x[4] = {odd ? other : one, both.x, both.y, odd ? one : other};
#pragma unroll
    for (int r = 0; r < 3; ++r) {
      const int i = j + 1 - r;
      if (i < 0 || i >= P1) continue;
      const float2 u = upper[i % 3], l = lower[i % 3];
#pragma unroll
      for (int column = 0; column < 3; ++column)
        mma8(c[r * 3 + column], u.x, l.x, u.y, l.y, x[column], x[column + 1]);
    }
  }
}

// c += dz at the chosen pixels times the patch around them and a 1: rows channels, columns taps.
__device__ __forceinline__ void add_first_grad(float (&c)[2][4], const ConvsShared& s) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, at = lane % 4;
  const int tap = tap_in_image(row), last = tap_in_image(8), corner = at / 2 * XS + at % 2;
  for (int four = warp; four < W1 / 4; four += WARPS) {  // four windows, of four pixels each
    float left[2][4], right[4][2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int channel = row + i * 8;
      const u32 chosen = reinterpret_cast<const u32*>(s.chosen + channel * W1)[four];
      const float4 z = reinterpret_cast<const float4*>(s.dz + channel * ZS)[four];
      const float v[4] = {z.x, z.y, z.z, z.w};
#pragma unroll
      for (int w = 0; w < 4; ++w) left[i][w] = int(chosen >> 8 * w & 255u) == at ? v[w] : 0.f;
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const int window = 4 * four + w;
      const float* p = s.x + window / P1 * 2 * XS + window % P1 * 2 + corner;
      right[w][0] = p[tap];
      right[w][1] = row == 0 ? p[last] : row == 1 ? 1.f : 0.f;
    }
#pragma unroll
    for (int w = 0; w < 4; w += 2)
#pragma unroll
      for (int t = 0; t < 2; ++t)
        mma8(c[t], left[0][w], left[1][w], left[0][w + 1], left[1][w + 1], right[w][t],
             right[w + 1][t]);
  }
}

// parts_k[block]: the second convolution's weights' gradient of this block's digits, as fragments
// [tile][tile of weights][4][lane]. parts_1[block]: for each channel of the first the sums of dz
// times its patch, and of dz. sums2: dbeta and dgamma of the second batchnorm, from parts2.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    convs_grad(float* parts_k, float* parts_1, float* sums2, const float* dz, const float* parts2,
               int rows, const float* known1, const float* known2, const float* parameters,
               const unsigned char* images, const i64* order, int batch) {
  extern __shared__ __align__(16) unsigned char memory[];
  ConvsShared& s = *reinterpret_cast<ConvsShared*>(memory);
  static_assert(C2 * OS <= C2 * PS, "staged weights fit in dy");
  Staged(parameters).put(s.dy);
  put_values(s.values);
  const Digits digits{images, nullptr, order, __float_as_int(known1[NOW]), batch};
  digits.send_word(s.word, digits.image(blockIdx.x));
  sent();
  const i64 second_image = digits.image(blockIdx.x + gridDim.x);
  if (threadIdx.x < 64) s.known[threadIdx.x] = known1[threadIdx.x];
  __syncthreads();
  put_weights(s.weights, s.dy);
  put_turned(s.turned, s.dy);
  __syncthreads();
  clear(s.x, XSIZE);
  clear(s.a, C1 * PS);
  clear(s.dy, C2 * PS);
  __syncthreads();
  const FirstConv first(parameters, s.known);
  const SecondConv second;
  const FirstGrad first_grad;
  float sign[2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    sign[i] = sign_of(parameters[BN2_W + second.tile * 16 + second.row + i * 8]);
  const auto begin = [&](i64 next) {  // a digit, so far as it needs nothing of `hidden_grad`
    wait_for_sent<0>();
    put_word(s.x, threadIdx.x < PIXELS / 4 ? s.word[threadIdx.x] : 0, s.values);
    __syncthreads();
    digits.send_word(s.word, next);
    sent();
    first.run<true>(s.a, s.chosen, s.x);
  };
  begin(second_image);
  const ToDy to_dy(known2);
  assay::await_previous_kernel();
  assay::let_next_kernel_start();
  sum_rows<64, 4>(s.sums, s.dz, parts2, rows);
  to_dy.put(s.to_dy, s.sums, batch);
  if (blockIdx.x == 0 && threadIdx.x < 64) sums2[threadIdx.x] = float(s.sums[threadIdx.x]);
  float ck[TAPS][4] = {}, c1[2][4] = {};
  for (int b = blockIdx.x; b < batch; b += gridDim.x) {
    __syncthreads();
    for (int i = threadIdx.x * 4; i < FLAT; i += THREADS * 4)
      send<16>(s.dz + i, dz + i64(b) * FLAT + i, true);
    if (threadIdx.x == 0) digits.send_image(&s.image, b + 2 * gridDim.x);
    sent();
    {
      float y[EACH][2][4];
      second.run(y, s.weights, s.a);
      wait_for_sent<0>();
      __syncthreads();
      put_dy(s, second, y, sign);
    }
    __syncthreads();
    {
      float c[ROWS][4];
      first_grad.run(c, s);
      if (first_grad.part == 1) first_grad.put<false>(s, c);
      __syncthreads();
      if (first_grad.part == 0) first_grad.put<true>(s, c);
    }
    add_weights_grad(ck, s);
    __syncthreads();
    add_first_grad(c1, s);
    __syncthreads();
    if (b + gridDim.x < batch) begin(s.image);
  }
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, at = lane % 4;
  float* out = parts_k + i64(blockIdx.x) * C2 * K2;
  const auto at_fragment = [&](int tap, int i) {
    return ((warp % 2 * KTILES + 2 * tap + warp / 2 % 2) * 4 + i) * 32 + lane;
  };
  if (warp >= WARPS / 2)  // the second half of the pixels
#pragma unroll
    for (int i = 0; i < TAPS * 4; ++i) s.weights[at_fragment(i / 4, i % 4)] = ck[i / 4][i % 4];
  __syncthreads();
  if (warp < WARPS / 2)
#pragma unroll
    for (int i = 0; i < TAPS * 4; ++i) {
      const int to = at_fragment(i / 4, i % 4);
      out[to] = ck[i / 4][i % 4] + s.weights[to];
    }
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
