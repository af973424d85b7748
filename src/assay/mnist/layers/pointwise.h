// What is left of the network: ReLU, max-pooling, cross-entropy, the update, and loading a batch.
#pragma once
#include <cmath>

#include "vectors.h"

namespace {

constexpr int64_t PARALLEL_FROM = 1 << 14;  // below, waking threads costs more than they save

template <typename T>
void relu(T* y, const T* x, int64_t n) {
#pragma omp parallel for simd if (n > PARALLEL_FROM)
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] <= 0 ? T(0) : x[i];  // a NaN stays
}

template <typename T>
void relu_grad(T* dx, const T* dy, const T* y, int64_t n) {
#pragma omp parallel for simd if (n > PARALLEL_FROM)
  for (int64_t i = 0; i < n; ++i) dx[i] = y[i] <= 0 ? T(0) : dy[i];
}

// Where the largest of a window of 2x2 lies; ties go to the first in row-major order, and a NaN is
// larger than anything, as in PyTorch.
template <typename T>
inline int64_t largest(const T* x, int64_t width) {
  int64_t best = 0;
  for (const int64_t at : {int64_t(1), width, width + 1})
    if (x[at] > x[best] || x[at] != x[at]) best = at;
  return best;
}

template <typename T>
void maxpool2d(T* y, const T* x, int64_t planes, int64_t height, int64_t width) {
  const int64_t h = height / 2, w = width / 2;
#pragma omp parallel for if (planes * h * w > PARALLEL_FROM)
  for (int64_t p = 0; p < planes; ++p)
    for (int64_t row = 0; row < h; ++row)
      for (int64_t column = 0; column < w; ++column) {
        const T* window = x + (p * height + 2 * row) * width + 2 * column;
        y[(p * h + row) * w + column] = window[largest(window, width)];
      }
}

template <typename T>
void maxpool2d_grad(T* dx, const T* dy, const T* x, int64_t planes, int64_t height, int64_t width) {
  const int64_t h = height / 2, w = width / 2;
#pragma omp parallel for if (planes * h * w > PARALLEL_FROM)
  for (int64_t p = 0; p < planes; ++p) {
    std::memset(dx + p * height * width, 0, height * width * sizeof(T));
    for (int64_t row = 0; row < h; ++row)
      for (int64_t column = 0; column < w; ++column) {
        const int64_t at = (p * height + 2 * row) * width + 2 * column;
        dx[at + largest(x + at, width)] = dy[(p * h + row) * w + column];
      }
  }
}

// log(sum_j exp(x_j)) of one row, its largest value taken out so that no exp overflows.
template <typename T>
inline double log_sum(const T* x, int64_t classes) {
  T most = x[0];
  for (int64_t j = 1; j < classes; ++j) most = x[j] > most ? x[j] : most;
  double sum = 0;
  for (int64_t j = 0; j < classes; ++j) sum += std::exp(double(x[j]) - most);
  return most + std::log(sum);
}

template <typename T>
void cross_entropy(T* loss, const T* x, const int64_t* labels, int64_t rows, int64_t classes) {
  double sum = 0;  // in one order: rows are few and short
  for (int64_t r = 0; r < rows; ++r)
    sum += log_sum(x + r * classes, classes) - x[r * classes + labels[r]];
  *loss = static_cast<T>(sum / rows);
}

template <typename T>
void cross_entropy_grad(T* dx, const T* dloss, const T* x, const int64_t* labels, int64_t rows,
                        int64_t classes) {
  const double scale = double(*dloss) / rows;
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * classes;
    double most = row[0], others = 0;
    for (int64_t j = 1; j < classes; ++j) most = row[j] > most ? row[j] : most;
    for (int64_t j = 0; j < classes; ++j)
      if (j != labels[r]) others += std::exp(row[j] - most);
    const double sum = others + std::exp(row[labels[r]] - most);
    for (int64_t j = 0; j < classes; ++j)
      // p - 1 of the label is minus what the others have: no digits cancel.
      dx[r * classes + j] = static_cast<T>(
          scale * ((j == labels[r] ? -others : std::exp(row[j] - most)) / sum));
  }
}

template <typename T>
void sgd_step(T* w, const T* grad, double rate, int64_t n) {
  // In double, rounded once: the rate itself has no exact float.
#pragma omp parallel for simd if (n > PARALLEL_FROM)
  for (int64_t i = 0; i < n; ++i) w[i] = static_cast<T>(w[i] - rate * grad[i]);
}

template <typename T>
void load_batch(T* x, int64_t* y, const uint8_t* images, const uint8_t* labels,
                const int64_t* order, int64_t batch, int64_t pixels) {
  T table[256];
  for (int v = 0; v < 256; ++v) table[v] = static_cast<T>((v / 255.0 - 0.1307) / 0.3081);
#pragma omp parallel for if (batch * pixels > PARALLEL_FROM)
  for (int64_t b = 0; b < batch; ++b) {
    y[b] = labels[order[b]];
    for (int64_t i = 0; i < pixels; ++i) x[b * pixels + i] = table[images[order[b] * pixels + i]];
  }
}

}  // namespace
