// dx = 2 x dy, the gradient of y = x * x, on the CPU: one loop that g++ vectorises.
//
// shapes  dx, dy, x: n elements, contiguous, of one type
// bytes   3 * n * sizeof(T) seen from here; the CPU also reads dx before it overwrites it
// FLOPs   2 * n
#include <cstdint>
#include <cstring>

namespace {

// Below this, waking the threads costs more (some us) than they save.
constexpr int64_t PARALLEL_FROM = 1 << 16;

struct bfloat16 {  // the upper half of a float
  uint16_t bits;
};

float wide(float v) { return v; }
double wide(double v) { return v; }
float wide(_Float16 v) { return static_cast<float>(v); }
float wide(bfloat16 v) {
  const uint32_t bits = uint32_t(v.bits) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

void store(float* p, float v) { *p = v; }
void store(double* p, double v) { *p = v; }
void store(_Float16* p, float v) { *p = static_cast<_Float16>(v); }
void store(bfloat16* p, float v) {
  uint32_t u;
  std::memcpy(&u, &v, 4);
  // To nearest even. A NaN is kept apart: the carry could turn it into an infinity or a zero.
  const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  const uint32_t quiet = u >> 16 | 0x40;
  p->bits = static_cast<uint16_t>((u & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

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
