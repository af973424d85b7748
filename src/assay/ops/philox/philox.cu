// y[4 t + j] = the j-th uniform number of counter offset + t: four a thread, stored as one.
//
// shapes  bounds: (low, high); state: (seed, offset); y: n floats
// bytes   4 * n written; 24 read
// FLOPs   24 operations a number: 21 of integers (for four numbers ten rounds of two products, the
//         two halves of one counted once, four xors and two additions; a shift) and 3 of floats
#include "philox.cuh"

extern "C" __global__ void __launch_bounds__(256)
    philox_uniform(float* y, const float* bounds, const long long* state, long long n) {
  const long long t = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
  if (4 * t >= n) return;
  const auto bits = assay::philox(static_cast<unsigned long long>(state[1] + t),
                                  static_cast<unsigned long long>(state[0]));
  const float low = bounds[0], width = bounds[1] - low;
  assay::Vec<float, 4> v;
#pragma unroll
  for (int j = 0; j < 4; ++j) v[j] = low + assay::uniform(bits[j]) * width;
  if (4 * t + 4 <= n && assay::aligned(y)) {
    assay::store(y + 4 * t, v);
  } else {
    for (int j = 0; j < 4 && 4 * t + j < n; ++j) y[4 * t + j] = v[j];
  }
}
