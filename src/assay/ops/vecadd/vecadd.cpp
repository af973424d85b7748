// y = a + b on the CPU: the loop that the GPU's threads share, which g++ vectorises.
//
// shapes  y, a, b: n floats, contiguous
// bytes   12 * n seen from here; the CPU also reads y before it overwrites it
// FLOPs   n
#include <cstdint>

extern "C" void vecadd_float32(float* __restrict__ y, const float* __restrict__ a,
                               const float* __restrict__ b, int64_t n) {
#pragma omp parallel for simd schedule(static) if (parallel : n >= 1 << 16)
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}
