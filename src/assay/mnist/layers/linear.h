// A fully connected layer, forward and backward, on the one product of matrices.
//
//   y = x w^T + b,   dx = dy w,   dw = dy^T x,   db = sum of dy over the batch
#pragma once
#include "product.h"

namespace {

template <typename T>
void linear(T* y, const T* x, const T* w, const T* b, int64_t rows, int64_t in, int64_t out) {
  std::vector<T> turned(in * out);
#pragma omp parallel for
  for (int64_t i = 0; i < in; ++i)
    for (int64_t o = 0; o < out; ++o) turned[i * out + o] = w[o * in + i];
  product<T>(y, x, in, 1, turned.data(), b, rows, out, in);
}

template <typename T>
void linear_grad(T* dx, T* dw, T* db, const T* dy, const T* x, const T* w, int64_t rows, int64_t in,
                 int64_t out) {
  product<T>(dx, dy, out, 1, w, nullptr, rows, in, out);
  product<T>(dw, dy, 1, out, x, nullptr, out, in, rows);
  for (int64_t o = 0; o < out; ++o) {
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += dy[r * out + o];
    db[o] = static_cast<T>(sum);
  }
}

}  // namespace
