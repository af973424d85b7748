// Sizes of the network, where each parameter lies, and how images lie in shared memory.
#pragma once

#include "tensor.cuh"

constexpr int SIDE = 28, PIXELS = SIDE * SIDE;
constexpr int C1 = 16, P1 = 14, W1 = P1 * P1;  // channels, side and pixels after the first block
constexpr int C2 = 32, P2 = 7, W2 = P2 * P2;   // and after the second
constexpr int FLAT = C2 * W2, HIDDEN = 128, CLASSES = 10, TAPS = 9;
constexpr int K2 = C1 * TAPS;  // weights of one output of the second convolution
constexpr float EPSILON = 1e-5f;

// All parameters in one array, in the order of model.Sizes.shapes.
constexpr int CONV1 = 0, CONV1_BIAS = 144, BN1_W = 160, BN1_B = 176, CONV2 = 192, CONV2_BIAS = 4800,
              BN2_W = 4832, BN2_B = 4864, FC1 = 4896, FC1_BIAS = 205600, FC2 = 205728,
              FC2_BIAS = 207008, PARAMETERS = 207018;

// A digit with its border: rows of XS floats. 12 modulo the 32 banks: four taps of eight pixels lie
// in different banks. A plane of 14 x 14 has rows of 16: one border cell left of a row, and right of
// it that of the next; even columns are at even places. PS is 8 modulo 32: four channels of eight
// pixels lie in different banks.
constexpr int XS = 44, XSIZE = 30 * XS, RS = 16, PS = 264;

__device__ __forceinline__ int at_pixel(int r, int c) { return (r + 1) * RS + c + 2; }
// Of tap k of a 3 x 3 window, from its upper left corner.
__device__ __forceinline__ int tap_in_image(int k) { return k / 3 * XS + k % 3; }

// The digits of a step: where they lie, and which of them come in which order.
struct Digits {
  const unsigned char* images;
  const unsigned char* labels;
  const i64* order;
  int step, batch;
  __device__ __forceinline__ i64 at(int b) const { return order[i64(step) * batch + b]; }
  // Which image digit b is; some image behind the batch.
  __device__ __forceinline__ i64 image(int b) const { return b < batch ? at(b) : 0; }
  __device__ __forceinline__ void send_image(i64* to, int b) const {
    send<8>(to, b < batch ? order + i64(step) * batch + b : order, b < batch);
  }
  // Four pixels of an image for each of 196 threads, nothing for the others.
  __device__ __forceinline__ u32 pixels(i64 image) const {
    if (threadIdx.x >= PIXELS / 4) return 0;
    return __ldg(reinterpret_cast<const u32*>(images + image * PIXELS) + threadIdx.x);
  }
  __device__ __forceinline__ void send_word(u32* to, i64 image) const {
    if (threadIdx.x < PIXELS / 4)
      send<4>(to + threadIdx.x,
              reinterpret_cast<const u32*>(images + image * PIXELS) + threadIdx.x, true);
  }
  __device__ __forceinline__ u32 word(int b) const { return pixels(image(b)); }
};

// Every pixel's value, normalised as load_batch does and rounded to tf32: two divisions a thread, and
// none for a pixel.
constexpr int VALUES = 256;
static_assert(VALUES == THREADS, "a thread a value");
__device__ __forceinline__ void put_values(float* values) {
  values[threadIdx.x] = tf32((float(threadIdx.x) / 255.f - 0.1307f) / 0.3081f);
}
// The word of `Digits::word`, as values.
__device__ __forceinline__ void put_word(float* x, u32 word, const float* values) {
  if (threadIdx.x >= PIXELS / 4) return;
  const int row = threadIdx.x / 7, column = threadIdx.x % 7 * 4;
  float* to = x + (row + 1) * XS + column + 1;
#pragma unroll
  for (int i = 0; i < 4; ++i) to[i] = values[word >> (8 * i) & 255u];
}

// n: a multiple of 4; x aligned to 16 bytes.
__device__ __forceinline__ void clear(float* x, int n) {
  for (int i = threadIdx.x; i < n / 4; i += THREADS)
    reinterpret_cast<float4*>(x)[i] = make_float4(0.f, 0.f, 0.f, 0.f);
}
