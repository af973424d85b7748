// 3x3 convolution with a border of one zero, forward and backward, directly over padded planes.
//
//   y[b, o, h, w]  = bias[o] + sum_{c, i, j} x[b, c, h + i - 1, w + j - 1] k[o, c, i, j]
//   dx             = the same convolution of dy with k turned by 180 degrees and o, c exchanged
//   dk[o, c, i, j] = sum_{b, h, w} dy[b, o, h, w] x[b, c, h + i - 1, w + j - 1]
//   db[o]          = sum_{b, h, w} dy[b, o, h, w]
//
// x is copied once into planes with the border around and rows filled up to whole vectors, so the
// loops below ask nothing about edges. Sums over the batch are made for chunks of images and then
// added up in order: the same bits whatever the number of threads.
#pragma once
#include "vectors.h"

namespace {

constexpr int64_t CHUNK_IMAGES = 8;

// Planes (count, h, w) as (count, h + 2, stride) with zeros around; stride = padded_row(w).
template <typename T>
int64_t padded_row(int64_t w) {
  return pieces(w, LANES<T>) * LANES<T> + 2;
}
template <typename T>
void pad(T* to, const T* from, int64_t count, int64_t h, int64_t w) {
  const int64_t stride = padded_row<T>(w);
  std::memset(to, 0, count * (h + 2) * stride * sizeof(T));
  for (int64_t p = 0; p < count; ++p)
    for (int64_t row = 0; row < h; ++row)
      std::memcpy(to + (p * (h + 2) + row + 1) * stride + 1, from + (p * h + row) * w,
                  w * sizeof(T));
}

// OUT output channels of one image; w is (OUT, in, 3, 3).
template <typename T, int OUT>
void convolve_channels(T* y, const T* padded, const T* w, const T* bias, int64_t in, int64_t height,
                       int64_t width) {
  constexpr int64_t L = LANES<T>;
  const int64_t stride = padded_row<T>(width), plane = (height + 2) * stride;
  for (int64_t row = 0; row < height; row += 2) {
    const bool two = row + 1 < height;  // the second of two rows; where there is none, any row
    for (int64_t column = 0; column < width; column += L) {
      Vector<T> sum[OUT][2];
      for (int o = 0; o < OUT; ++o)
        sum[o][0] = sum[o][1] = Vector<T>{} + (bias ? bias[o] : T(0));
      for (int64_t c = 0; c < in; ++c)
        for (int i = 0; i < 3; ++i)
          for (int j = 0; j < 3; ++j) {
            const T* at = padded + c * plane + (row + i) * stride + column + j;
            const Vector<T> upper = load(at), lower = load(two ? at + stride : at);
#pragma GCC unroll 8
            for (int o = 0; o < OUT; ++o) {
              const T factor = w[(o * in + c) * 9 + i * 3 + j];
              sum[o][0] += factor * upper;
              sum[o][1] += factor * lower;
            }
          }
      const int64_t count = least(L, width - column);
      for (int o = 0; o < OUT; ++o) {
        T* to = y + (o * height + row) * width + column;
        store(to, sum[o][0], count);
        if (two) store(to + width, sum[o][1], count);
      }
    }
  }
}

template <typename T>
void convolve(T* y, const T* x, const T* w, const T* bias, int64_t batch, int64_t in, int64_t out,
              int64_t height, int64_t width) {
  // A row's last vector may reach past its padded plane by a column or two; what it reads is unused.
  const int64_t planes = in * (height + 2) * padded_row<T>(width) + 2 * LANES<T>;
#pragma omp parallel
  {
    std::vector<T> padded(planes);
#pragma omp for schedule(dynamic)
    for (int64_t b = 0; b < batch; ++b) {
      pad(padded.data(), x + b * in * height * width, in, height, width);
      T* image = y + b * out * height * width;
      int64_t o = 0;
      const auto at = [&](int64_t k) { return image + k * height * width; };
      const auto shift = [&](int64_t k) { return bias ? bias + k : nullptr; };
      for (; o + 8 <= out; o += 8)
        convolve_channels<T, 8>(at(o), padded.data(), w + o * in * 9, shift(o), in, height, width);
      for (; o < out; ++o)
        convolve_channels<T, 1>(at(o), padded.data(), w + o * in * 9, shift(o), in, height, width);
    }
  }
}

// Adds one image to the nine sums of OUT output channels and one input channel. dy has whole
// vectors in its rows, filled up with zeros.
template <typename T, int OUT>
inline void correlate(Vector<T> (&sum)[OUT][9], const T* dy, int64_t dy_plane, int64_t dy_stride,
                      const T* padded, int64_t stride, int64_t height) {
  constexpr int64_t L = LANES<T>;
  for (int64_t row = 0; row < height; ++row)
    for (int64_t column = 0; column < dy_stride; column += L) {
      Vector<T> grad[OUT];
      for (int o = 0; o < OUT; ++o) grad[o] = load(dy + o * dy_plane + row * dy_stride + column);
#pragma GCC unroll 9
      for (int tap = 0; tap < 9; ++tap) {
        const Vector<T> value = load(padded + (row + tap / 3) * stride + column + tap % 3);
        for (int o = 0; o < OUT; ++o) sum[o][tap] += grad[o] * value;
      }
    }
}

template <typename T, int OUT>
void weights_of(double* dw, const T* dy, int64_t dy_plane, int64_t dy_stride, const T* padded,
                int64_t images, int64_t in, int64_t out, int64_t height, int64_t stride) {
  const int64_t plane = (height + 2) * stride;
  for (int64_t c = 0; c < in; ++c) {
    Vector<T> sum[OUT][9] = {};
    for (int64_t b = 0; b < images; ++b)
      correlate<T, OUT>(sum, dy + b * out * dy_plane, dy_plane, dy_stride,
                        padded + (b * in + c) * plane, stride, height);
    for (int o = 0; o < OUT; ++o)
      for (int tap = 0; tap < 9; ++tap) dw[(o * in + c) * 9 + tap] = total<T>(sum[o][tap]);
  }
}

template <typename T>
void convolve_weights(T* dw, T* db, const T* dy, const T* x, int64_t batch, int64_t in, int64_t out,
                      int64_t height, int64_t width) {
  const int64_t stride = padded_row<T>(width), dy_stride = stride - 2, dy_plane = height * dy_stride;
  const int64_t chunks = pieces(batch, CHUNK_IMAGES), weights = out * in * 9;
  std::vector<double> parts(chunks * (weights + out), 0.0);
#pragma omp parallel
  {
    std::vector<T> padded(CHUNK_IMAGES * in * (height + 2) * stride + 2 * LANES<T>);
    std::vector<T> filled(CHUNK_IMAGES * out * dy_plane, T(0));
#pragma omp for schedule(dynamic)
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int64_t first = chunk * CHUNK_IMAGES, images = least(CHUNK_IMAGES, batch - first);
      double* part = parts.data() + chunk * (weights + out);
      pad(padded.data(), x + first * in * height * width, images * in, height, width);
      for (int64_t row = 0; row < images * out * height; ++row)
        std::memcpy(filled.data() + row * dy_stride, dy + (first * out * height + row) * width,
                    width * sizeof(T));
      int64_t o = 0;
      for (; o + 2 <= out; o += 2)
        weights_of<T, 2>(part + o * in * 9, filled.data() + o * dy_plane, dy_plane, dy_stride,
                         padded.data(), images, in, out, height, stride);
      for (; o < out; ++o)
        weights_of<T, 1>(part + o * in * 9, filled.data() + o * dy_plane, dy_plane, dy_stride,
                         padded.data(), images, in, out, height, stride);
      for (int64_t b = 0; b < images; ++b)
        for (o = 0; o < out; ++o) {
          Vector<T> sum = {};
          for (int64_t k = 0; k < dy_plane; k += LANES<T>)
            sum += load(filled.data() + (b * out + o) * dy_plane + k);
          part[weights + o] += total<T>(sum);
        }
    }
  }
  for (int64_t k = 0; k < weights + out; ++k) {
    double sum = 0;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += parts[chunk * (weights + out) + k];
    (k < weights ? dw[k] : db[k - weights]) = static_cast<T>(sum);
  }
}

template <typename T>
void convolve_input(T* dx, const T* dy, const T* w, int64_t batch, int64_t in, int64_t out,
                    int64_t height, int64_t width) {
  std::vector<T> turned(in * out * 9);
  for (int64_t o = 0; o < out; ++o)
    for (int64_t c = 0; c < in; ++c)
      for (int tap = 0; tap < 9; ++tap)
        turned[(c * out + o) * 9 + 8 - tap] = w[(o * in + c) * 9 + tap];
  convolve<T>(dx, dy, turned.data(), nullptr, batch, out, in, height, width);
}

}  // namespace
