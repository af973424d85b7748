// dx = y (dy - s) with s = sum_j dy_j y_j of each row, the gradient of y = softmax(x), on the CPU.
//
// shapes  dx, dy, y: (rows, n), contiguous, of one type
// bytes   3 * rows * n * sizeof(T) seen from here, if a row stays in a cache for its second walk
// FLOPs   4 * rows * n
#include <cstdint>

#include "floats.h"

namespace {

// Below this, waking the threads costs more (some us) than they save.
constexpr int64_t PARALLEL_FROM = 1 << 14;

template <typename T>
void gradient_row(T* dx, const T* dy, const T* y, int64_t n) {
  using A = decltype(wide(T()));
  // Sixteen sums side by side: they fill a vector, and each is a sixteenth as long.
  constexpr int L = 16;
  A sums[L] = {};
  int64_t i = 0;
  for (; i + L <= n; i += L)
    for (int j = 0; j < L; ++j) sums[j] += wide(dy[i + j]) * wide(y[i + j]);
  for (; i < n; ++i) sums[0] += wide(dy[i]) * wide(y[i]);
  A s = 0;
  for (int j = 0; j < L; ++j) s += sums[j];
  for (i = 0; i < n; ++i) store(dx + i, wide(y[i]) * (wide(dy[i]) - s));
}

template <typename T>
void gradient(T* dx, const T* dy, const T* y, int64_t rows, int64_t n) {
#pragma omp parallel for schedule(static) if (rows > 1 && rows * n >= PARALLEL_FROM)
  for (int64_t row = 0; row < rows; ++row)
    gradient_row(dx + row * n, dy + row * n, y + row * n, n);
}

}  // namespace

extern "C" {
void softmax_grad_float32(float* dx, const float* dy, const float* y, int64_t rows, int64_t n) {
  gradient(dx, dy, y, rows, n);
}
void softmax_grad_float64(double* dx, const double* dy, const double* y, int64_t rows, int64_t n) {
  gradient(dx, dy, y, rows, n);
}
void softmax_grad_float16(_Float16* dx, const _Float16* dy, const _Float16* y, int64_t rows,
                          int64_t n) {
  gradient(dx, dy, y, rows, n);
}
void softmax_grad_bfloat16(uint16_t* dx, const uint16_t* dy, const uint16_t* y, int64_t rows,
                           int64_t n) {
  gradient(reinterpret_cast<bfloat16*>(dx), reinterpret_cast<const bfloat16*>(dy),
           reinterpret_cast<const bfloat16*>(y), rows, n);
}
}
