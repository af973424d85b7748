// Floats on the CPU: bfloat16, which g++ has from 13 on only, and each type to what is computed in.
#pragma once
#include <cstdint>
#include <cstring>

namespace {

struct bfloat16 {  // the upper half of a float
  uint16_t bits;
};

// To double for double, to float for everything narrower: exact for every type.
inline float wide(float v) { return v; }
inline double wide(double v) { return v; }
inline float wide(_Float16 v) { return static_cast<float>(v); }
inline float wide(bfloat16 v) {
  const uint32_t bits = uint32_t(v.bits) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

// To nearest even. A NaN is kept apart: the carry could turn it into an infinity or a zero.
inline bfloat16 narrowed(float v) {
  uint32_t u;
  std::memcpy(&u, &v, 4);
  const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  const uint32_t quiet = u >> 16 | 0x40;
  return {static_cast<uint16_t>((u & 0x7fffffff) > 0x7f800000 ? quiet : rounded)};
}

// Back, rounded once.
inline void store(float* p, float v) { *p = v; }
inline void store(double* p, double v) { *p = v; }
inline void store(_Float16* p, float v) { *p = static_cast<_Float16>(v); }
inline void store(bfloat16* p, float v) { *p = narrowed(v); }

}  // namespace
