// dx = 2 x dy, the gradient of y = x * x, on the CPU: one loop that g++ vectorises.
//
// shapes  dx, dy, x: n elements, contiguous, of one type
// bytes   3 * n * sizeof(T) seen from here; the CPU also reads dx before it overwrites it
// FLOPs   2 * n
#include <cstdint>

#include "floats.h"

namespace {

// Below this, waking the threads costs more (some us) than they save.
constexpr int64_t PARALLEL_FROM = 1 << 16;

template <typename T>
void gradient(T* __restrict__ dx, const T* __restrict__ dy, const T* __restrict__ x, int64_t n) {
#pragma omp parallel for simd schedule(static) if (parallel : n >= PARALLEL_FROM)
  // The factor 2 comes last: it is exact, and 2 x might overflow where the product does not.
  for (int64_t i = 0; i < n; ++i) store(dx + i, wide(x[i]) * wide(dy[i]) * 2);
}

}  // namespace

extern "C" {
void square_grad_float32(float* dx, const float* dy, const float* x, int64_t n) {
  gradient(dx, dy, x, n);
}
void square_grad_float64(double* dx, const double* dy, const double* x, int64_t n) {
  gradient(dx, dy, x, n);
}
void square_grad_float16(_Float16* dx, const _Float16* dy, const _Float16* x, int64_t n) {
  gradient(dx, dy, x, n);
}
void square_grad_bfloat16(uint16_t* dx, const uint16_t* dy, const uint16_t* x, int64_t n) {
  gradient(reinterpret_cast<bfloat16*>(dx), reinterpret_cast<const bfloat16*>(dy),
           reinterpret_cast<const bfloat16*>(x), n);
}
}
