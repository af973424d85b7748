// 64-byte vectors as g++ knows them: arithmetic works lane by lane on any machine, and a machine with
// narrower registers splits them.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

// Passed otherwise where a machine has no such registers; here they never leave one library.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace {

template <typename T>
struct Lanes;
template <>
struct Lanes<float> {
  typedef float vector __attribute__((vector_size(64)));
};
template <>
struct Lanes<double> {
  typedef double vector __attribute__((vector_size(64)));
};
template <typename T>
using Vector = typename Lanes<T>::vector;
template <typename T>
constexpr int64_t LANES = 64 / sizeof(T);

template <typename T>
inline Vector<T> load(const T* p) {
  Vector<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <typename T>
inline void store(T* p, Vector<T> v) {
  std::memcpy(p, &v, sizeof v);
}
template <typename T>
inline void store(T* p, Vector<T> v, int64_t count) {
  std::memcpy(p, &v, count * sizeof(T));
}

template <typename T>
inline T total(Vector<T> v) {
  T sum = 0;
  for (int64_t i = 0; i < LANES<T>; ++i) sum += v[i];
  return sum;
}

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
// How many pieces of `size` cover n.
inline int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }

}  // namespace
