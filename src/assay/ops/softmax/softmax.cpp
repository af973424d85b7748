// y = softmax(x) over the last dimension on the CPU: rows are shared among threads, and every row
// is walked 64 bytes of accumulators at a time with an exp made of plain vector arithmetic, because
// a call of expf for each element would cost more than all the rest.
//
// shapes  x, y: (rows, n), contiguous, of one type
// bytes   2 * rows * n * sizeof(T) seen from here; the CPU also reads y before it overwrites it
// FLOPs   5 * rows * n counting exp as one (max, subtract, exp, add, divide)
//
// Three walks over a row: max; exp and its sum; y. The second and third find the row in a cache.
// The exps wait in y itself or, so that narrow types are rounded once, in a row of floats.
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "floats.h"

// 64-byte vectors are passed otherwise where the machine has none; here they never leave the file.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace {

// Below this many elements, waking the threads costs more (some us) than they save.
constexpr int64_t PARALLEL_FROM = 1 << 14;

// Vectors as g++ knows them: arithmetic, comparison and ?: work lane by lane, on any machine. And
// what `exponential` needs to know of a type.
template <typename A>
struct Types;
template <>
struct Types<float> {
  typedef float vector __attribute__((vector_size(64)));
  typedef uint32_t bits __attribute__((vector_size(64)));
  static constexpr int mantissa = 23, bias = 127, lift = 64;
  static constexpr float drop = 0x1p-64;         // 2^-lift
  static constexpr int terms = 8;                // the next, 0.347^8 / 8!, is 0.04 units of 2^-23
  static constexpr float lowest = -104;          // exp of it rounds to 0, subnormals considered
  static constexpr float ln2_high = 0x1.62e4p-1;  // short: times an exponent it is exact
  static constexpr float ln2_low = 0x1.7f7d1cf79abcap-20;  // ln 2 = high + low
};
template <>
struct Types<double> {
  typedef double vector __attribute__((vector_size(64)));
  typedef uint64_t bits __attribute__((vector_size(64)));
  static constexpr int mantissa = 52, bias = 1023, lift = 128;
  static constexpr double drop = 0x1p-128;
  static constexpr int terms = 14;  // the next, 0.347^14 / 14!, is 0.02 units of 2^-52
  static constexpr double lowest = -746;
  static constexpr double ln2_high = 0x1.62e42fefap-1;
  static constexpr double ln2_low = 0x1.cf79abc9e3b3ap-40;
};
template <typename A>
using Vector = typename Types<A>::vector;
template <typename A>
constexpr int LANES = 64 / sizeof(A);

template <typename A>
Vector<A> all(A v) {
  return v - Vector<A>{};
}

// 1/k! for k = 0, 1, ...
template <typename A>
struct Taylor {
  A term[Types<A>::terms];
  constexpr Taylor() : term() {
    long double factorial = 1;
    for (int k = 0; k < Types<A>::terms; ++k) {
      if (k > 0) factorial *= k;
      term[k] = static_cast<A>(1 / factorial);
    }
  }
};

// exp(v) for v <= 0, lane by lane; NaN stays NaN. With k the integer nearest to v / ln 2 it is
// exp(v - k ln 2) * 2^k, where the first argument lies within ln 2 / 2 of zero.
template <typename A>
inline __attribute__((always_inline)) Vector<A> exponential(Vector<A> v) {
  using Type = Types<A>;
  constexpr Taylor<A> taylor;
  // Below `lowest` (-inf too) the result is 0; a NaN fails the comparison and stays.
  v = v < all<A>(Type::lowest) ? all<A>(Type::lowest) : v;

  // At 1.5 * 2^mantissa neighbouring numbers are 1 apart: adding it rounds v / ln 2 to an integer
  // and leaves that in the lowest bits. Together with `bias` they are the exponent of 2^(k + lift),
  // which `lift` keeps among the normal numbers.
  constexpr A log2e = 1.44269504088896340736L;
  constexpr A magic = A(3) * (int64_t(1) << (Type::mantissa - 1)) + (Type::bias + Type::lift);
  const Vector<A> shifted = v * log2e + magic;
  const Vector<A> k = shifted - magic;
  const Vector<A> power = (Vector<A>)((typename Type::bits)shifted << Type::mantissa);

  const Vector<A> r = (v - k * Type::ln2_high) - k * Type::ln2_low;
  Vector<A> sum = all<A>(taylor.term[Type::terms - 1]);
#pragma GCC unroll 16
  for (int i = Type::terms - 2; i >= 0; --i) sum = sum * r + taylor.term[i];
  // The first product is exact, so a subnormal result is rounded once, by the second.
  return sum * power * Type::drop;
}

// ---- storage types: to and from vectors of what is computed in ------------------------------

template <typename T>
struct Storage {  // float and double: computed in as they are
  using wide = T;
};
template <>
struct Storage<_Float16> {
  using wide = float;
};
template <>
struct Storage<bfloat16> {
  using wide = float;
};
template <typename T>
using Wide = typename Storage<T>::wide;

typedef uint16_t Shorts __attribute__((vector_size(32)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef _Float16 Halves __attribute__((vector_size(32)));

// g++ 12 converts vectors of halves one by one, unless it is given the instruction.
inline Vector<float> widened(Halves v) {
#ifdef __AVX512F__
  return (Vector<float>)_mm512_maskz_cvtph_ps(0xffff, (__m256i)v);
#else
  return __builtin_convertvector(v, Vector<float>);
#endif
}
inline Halves narrowed(Vector<float> v) {
#ifdef __AVX512F__
  return (Halves)_mm512_maskz_cvtps_ph(0xffff, (__m512)v, _MM_FROUND_TO_NEAREST_INT);
#else
  return __builtin_convertvector(v, Halves);
#endif
}

template <typename T>
inline Vector<Wide<T>> load(const T* p) {
  if constexpr (sizeof(T) == 2) {
    Shorts raw;
    std::memcpy(&raw, p, sizeof raw);
    if constexpr (std::is_same_v<T, bfloat16>)
      return (Vector<float>)(__builtin_convertvector(raw, Words) << 16);
    else
      return widened((Halves)raw);
  } else {
    Vector<T> v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
}

inline void store(float* p, Vector<float> v) { std::memcpy(p, &v, sizeof v); }
inline void store(double* p, Vector<double> v) { std::memcpy(p, &v, sizeof v); }
inline void store(_Float16* p, Vector<float> v) {
  const Halves raw = narrowed(v);
  std::memcpy(p, &raw, sizeof raw);
}
inline void store(bfloat16* p, Vector<float> v) {
  const Words u = (Words)v;
  // To nearest even. A NaN is kept apart: the carry could turn it into an infinity or a zero.
  const Words rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  const Words kept = (u & 0x7fffffff) > 0x7f800000 ? (u >> 16 | 0x40) : rounded;
  const Shorts raw = __builtin_convertvector(kept, Shorts);
  std::memcpy(p, &raw, sizeof raw);
}

// The last elements of a row, fewer than a vector's lanes, filled up with -inf: no max, and exp 0.
template <typename T>
inline Vector<Wide<T>> load(const T* p, int64_t count) {
  T padded[LANES<Wide<T>>];
  store(padded, all<Wide<T>>(-std::numeric_limits<Wide<T>>::infinity()));
  std::memcpy(padded, p, count * sizeof(T));
  return load(padded);
}
template <typename T>
inline void store(T* p, Vector<Wide<T>> v, int64_t count) {
  T padded[LANES<Wide<T>>];
  store(padded, v);
  std::memcpy(p, padded, count * sizeof(T));
}

// ---- the kernel -----------------------------------------------------------------------------

// `exps` is room for n numbers; it may be y.
template <typename T>
void softmax_row(T* y, const T* x, int64_t n, Wide<T>* exps) {
  using A = Wide<T>;
  constexpr int L = LANES<A>;
  constexpr A lowest = -std::numeric_limits<A>::infinity();
  const int64_t full = n / L * L;

  // Four chains, because one would wait for each comparison before the next. A NaN loses every
  // comparison; it comes back through exp below.
  Vector<A> tops[4] = {all(lowest), all(lowest), all(lowest), all(lowest)};
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    for (int c = 0; c < 4; ++c) {
      const Vector<A> v = load(x + i + c * L);
      tops[c] = v > tops[c] ? v : tops[c];
    }
  }
  for (; i < full; i += L) {
    const Vector<A> v = load(x + i);
    tops[0] = v > tops[0] ? v : tops[0];
  }
  if (full < n) {
    const Vector<A> v = load(x + full, n - full);
    tops[1] = v > tops[1] ? v : tops[1];
  }
  A top = lowest;
  for (int c = 0; c < 4; ++c)
    for (int j = 0; j < L; ++j) top = tops[c][j] > top ? tops[c][j] : top;
  // A row of nothing but -inf: exp(-inf - 0) = 0 for each, then 0 * (1 / 0) = NaN, as torch has it.
  // With +inf it is exp(inf - inf), NaN at once.
  const Vector<A> shift = all(top == lowest ? A(0) : top);

  // Sums of pieces are summed: the error then grows with a piece's length plus their number, not
  // with the length of the row.
  constexpr int64_t PIECE = 64 * L;
  Vector<A> sums{};
  for (int64_t begin = 0; begin < full; begin += PIECE) {
    const int64_t end = begin + PIECE < full ? begin + PIECE : full;
    Vector<A> piece{};
    for (i = begin; i < end; i += L) {
      const Vector<A> e = exponential<A>(load(x + i) - shift);
      store(exps + i, e);
      piece += e;
    }
    sums += piece;
  }
  if (full < n) {
    const Vector<A> e = exponential<A>(load(x + full, n - full) - shift);
    store(exps + full, e, n - full);
    sums += e;
  }
  A sum = 0;
  for (int j = 0; j < L; ++j) sum += sums[j];

  const A scale = 1 / sum;  // 1 <= sum <= n for a finite row, so this loses no range
  for (i = 0; i < full; i += L) store(y + i, load(exps + i) * scale);
  if (full < n) store(y + full, load(exps + full, n - full) * scale, n - full);
}

template <typename T>
void softmax(T* y, const T* x, int64_t rows, int64_t n) {
#pragma omp parallel if (rows > 1 && rows * n >= PARALLEL_FROM)
  {
    // Where y is as wide as what is computed in, it holds the exps itself.
    std::unique_ptr<Wide<T>[]> room;
    if constexpr (!std::is_same_v<T, Wide<T>>) room.reset(new Wide<T>[n]);
#pragma omp for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
      T* to = y + row * n;
      if constexpr (!std::is_same_v<T, Wide<T>>)
        softmax_row(to, x + row * n, n, room.get());
      else
        softmax_row(to, x + row * n, n, to);
    }
  }
}

}  // namespace

extern "C" {
void softmax_float32(float* y, const float* x, int64_t rows, int64_t n) { softmax(y, x, rows, n); }
void softmax_float64(double* y, const double* x, int64_t rows, int64_t n) {
  softmax(y, x, rows, n);
}
void softmax_float16(_Float16* y, const _Float16* x, int64_t rows, int64_t n) {
  softmax(y, x, rows, n);
}
void softmax_bfloat16(uint16_t* y, const uint16_t* x, int64_t rows, int64_t n) {
  softmax(reinterpret_cast<bfloat16*>(y), reinterpret_cast<const bfloat16*>(x), rows, n);
}
}
