// Elements of the tensor-core types, eight at a time: their values, the rounding of results, the
// product of matrices.
#pragma once

#include "tensor.h"

#if defined(__AVX__)
#include <immintrin.h>
#endif

// Vectors go from function to function only where those are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace tensor {

template <class T, int COUNT>
using Vector __attribute__((vector_size(COUNT * sizeof(T)))) = T;
using Half8 = Vector<u16, 8>;
using Byte8 = Vector<u8, 8>;
using Bits8 = Vector<u32, 8>;
using Wide8 = Vector<u64, 8>;
using Single8 = Vector<f32, 8>;
using Double8 = Vector<f64, 8>;

// A vector from memory that need not be aligned, and back.
template <class V>
SIMT_INLINE V fetch(const void* from) {
    V v;
    memcpy(&v, from, sizeof v);
    return v;
}

// Eight f32 and f64. The compiler's own conversions take halves, or one number at a time.
SIMT_INLINE Double8 widened(Single8 x) {
#if defined(__AVX512F__)
    return _mm512_cvtps_pd(x);
#elif defined(__AVX__)
    const auto v = bit_cast<__m256>(x);
    const __m256d halves[] = {_mm256_cvtps_pd(_mm256_castps256_ps128(v)),
                              _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1))};
    return fetch<Double8>(halves);
#else
    return __builtin_convertvector(x, Double8);
#endif
}
SIMT_INLINE Single8 narrowed(Double8 x) {
#if defined(__AVX512F__)
    return _mm512_cvtpd_ps(x);
#elif defined(__AVX__)
    __m256d halves[2];
    memcpy(halves, &x, sizeof halves);
    return bit_cast<Single8>(_mm256_set_m128(_mm256_cvtpd_ps(halves[1]), _mm256_cvtpd_ps(halves[0])));
#else
    return __builtin_convertvector(x, Single8);
#endif
}

template <class V, class X>
SIMT_INLINE void keep(V numbers, X* to) {
    memcpy(to, &numbers, sizeof numbers);
}

// ---- values of elements --------------------------------------------------------------------------

// f16 to f32, exactly: 112 more to the exponent, 224 for infinity and NaN; a subnormal is
// m 2^-24 = (2^-14 + m 2^-24) - 2^-14.
SIMT_INLINE Single8 half_values(Half8 x) {
#if defined(__F16C__)
    return bit_cast<Single8>(_mm256_cvtph_ps(bit_cast<__m128i>(x)));
#else
    const auto h = __builtin_convertvector(x, Bits8);
    const Bits8 m = (h & 0x7FFF) << 13, e = m & (31u << 23), least = Bits8{} + (113u << 23);
    const auto tiny = bit_cast<Bits8>(bit_cast<Single8>(m + least) - bit_cast<Single8>(least));
    const Bits8 large = m + (e == 31u << 23 ? Bits8{} + (224u << 23) : Bits8{} + (112u << 23));
    return bit_cast<Single8>((e == 0 ? tiny : large) | (h & 0x8000) << 16);
#endif
}

// e4m3 has the exponent's bias 7, no infinity and one NaN. As an f16, whose bias is 15, its bits
// mean 2^-8 times as much.
SIMT_INLINE Single8 e4m3_values(Bits8 b) {
    const Bits8 magnitude = b & 0x7F, bits = (b & 0x80) << 8 | magnitude << 7;
    const Single8 finite = half_values(__builtin_convertvector(bits, Half8)) * 256;
    const Bits8 nan = Bits8{} + 0x7FFFFFFF;
    return bit_cast<Single8>(magnitude == 0x7F ? nan : bit_cast<Bits8>(finite));
}

// ---- rounding of sums ----------------------------------------------------------------------------

SIMT_INLINE Double8 size_of(Double8 x) { return bit_cast<Double8>(bit_cast<Wide8>(x) << 1 >> 1); }

// To f32, toward zero. 2^128 and more is infinity, less is at most the largest f32.
SIMT_INLINE Bits8 rounded_f32(Double8 x) {
    const Single8 nearest = narrowed(x);
    const Double8 size = size_of(x), back = size_of(widened(nearest));
    const auto away = (back > size) & (size < 0x1p128);  // 0 or -1
    const auto nan = x != x;
    const auto step = bit_cast<Bits8>(__builtin_convertvector(away, Vector<s32, 8>));
    const auto is_nan = bit_cast<Bits8>(__builtin_convertvector(nan, Vector<s32, 8>));
    return ((bit_cast<Bits8>(nearest) + step) & ~is_nan) | (is_nan & 0x7FFFFFFF);
}

// To f16, to nearest even, at once from f64: adding and taking away 1.5 * 2^42 times the leading
// power of two leaves the multiples of the last bit of an f16. Then the bits are those of an f32.
SIMT_INLINE Half8 rounded_f16(Double8 x) {
    const Wide8 one = Wide8{} + 1, field = bit_cast<Wide8>(x) >> 52 & 0x7FF;
    const Wide8 least = one * (1023 - 14), most = one * (1023 + 17);
    const Wide8 exponent = field < least ? least : field > most ? most : field;
    const Double8 step = bit_cast<Double8>((exponent + 42) << 52) * 1.5;
    const Double8 size = size_of((x + step) - step);
    const auto single = bit_cast<Bits8>(narrowed(size));
    // A subnormal is m 2^-24: its f32, with 2^-14 added, has m in the bits below the exponent.
    const auto raised = bit_cast<Bits8>(narrowed(size + 0x1p-14));
    const Bits8 tiny = (raised >> 13) - (113u << 10), normal = (single >> 13) - (112u << 10);
    const Bits8 finite = single < 113u << 23 ? tiny : normal;
    const Bits8 magnitude = single >= 143u << 23 ? Bits8{} + 0x7C00 : finite;
    const auto sign = __builtin_convertvector(bit_cast<Wide8>(x) >> 48 & 0x8000, Bits8);
    const Bits8 bits = single > 255u << 23 ? Bits8{} + 0x7FFF : magnitude | sign;
    return __builtin_convertvector(bits, Half8);
}

// ---- types ---------------------------------------------------------------------------------------

// Of a type of multiplicands: Number, what is multiplied; of(), numbers of eight elements. Integers
// are f32: products of 8 bits and their sums over 64 k have at most 22 bits, so nothing is rounded.
template <class T>
struct Value;

template <>
struct Value<F16> {
    using Number = f64;
    SIMT_INLINE Double8 of(Half8 x) { return widened(half_values(x)); }
};
template <>
struct Value<BF16> {
    using Number = f64;
    SIMT_INLINE Double8 of(Half8 x) {
        return widened(bit_cast<Single8>(__builtin_convertvector(x, Bits8) << 16));
    }
};
template <>
struct Value<TF32> {
    using Number = f64;
    SIMT_INLINE Double8 of(Bits8 x) { return widened(bit_cast<Single8>(x & 0xFFFFE000)); }
};
template <>
struct Value<F64> {
    using Number = f64;
    SIMT_INLINE Double8 of(Wide8 x) { return bit_cast<Double8>(x); }
};
template <>
struct Value<E4M3> {
    using Number = f64;
    SIMT_INLINE Double8 of(Bits8 x) { return widened(e4m3_values(x)); }
};
template <>
struct Value<E5M2> {
    using Number = f64;
    SIMT_INLINE Double8 of(Bits8 x) {
        return widened(half_values(__builtin_convertvector(x << 8, Half8)));
    }
};
SIMT_INLINE Single8 signed_values(Bits8 x) {
    return __builtin_convertvector(bit_cast<Vector<s32, 8>>(x), Single8);
}
template <>
struct Value<S8> {
    using Number = f32;
    SIMT_INLINE Single8 of(Bits8 x) { return signed_values((x ^ 0x80) - 0x80); }
};
template <>
struct Value<U8> {
    using Number = f32;
    SIMT_INLINE Single8 of(Bits8 x) { return signed_values(x); }
};
template <>
struct Value<S4> {
    using Number = f32;
    SIMT_INLINE Single8 of(Bits8 x) { return signed_values((x ^ 8) - 8); }
};
template <>
struct Value<U4> {
    using Number = f32;
    SIMT_INLINE Single8 of(Bits8 x) { return signed_values(x); }
};

// Of a type of accumulators: start(), with what summing begins; finish(), the result from the sums
// and the accumulators' former bits.
template <class T>
struct Sum;

template <>
struct Sum<F16> {
    using Items = Half8;
    SIMT_INLINE Double8 start(Half8 c) { return widened(half_values(c)); }
    SIMT_INLINE Half8 finish(Double8 sum, Half8) { return rounded_f16(sum); }
};
template <>
struct Sum<F32> {
    using Items = Bits8;
    SIMT_INLINE Double8 start(Bits8 c) { return widened(bit_cast<Single8>(c)); }
    SIMT_INLINE Bits8 finish(Double8 sum, Bits8) { return rounded_f32(sum); }
};
template <>
struct Sum<F64> {
    using Items = Wide8;
    SIMT_INLINE Double8 start(Wide8 c) { return bit_cast<Double8>(c); }
    SIMT_INLINE Wide8 finish(Double8 sum, Wide8) { return bit_cast<Wide8>(sum); }
};
template <>
struct Sum<S32> {
    using Items = Bits8;
    SIMT_INLINE Single8 start(Bits8) { return Single8{}; }
    SIMT_INLINE Bits8 finish(Single8 sum, Bits8 c) {
        return bit_cast<Bits8>(__builtin_convertvector(sum, Vector<s32, 8>)) + c;
    }
};
template <>
struct Sum<CLAMPED> {
    using Items = Bits8;
    SIMT_INLINE Single8 start(Bits8) { return Single8{}; }
    SIMT_INLINE Bits8 finish(Single8 sum, Bits8 c) {
        const auto products = __builtin_convertvector(sum, Vector<s32, 8>);
        const auto wrapped = bit_cast<Vector<s32, 8>>(bit_cast<Bits8>(products) + c);
        // Over: both have one sign and the sum the other. The limit has the sign that both have.
        const auto old = bit_cast<Vector<s32, 8>>(c);
        const auto over = ((products ^ wrapped) & (old ^ wrapped)) < 0;
        const auto limit = (old >> 31) ^ 0x7FFFFFFF;
        return bit_cast<Bits8>(over ? limit : wrapped);
    }
};

template <class T>
using Number = typename Value<T>::Number;
template <class X>
using Eight = Vector<X, 8>;
template <class T>
using Items = typename Sum<T>::Items;
template <class T>
using Item = std::remove_reference_t<decltype(Items<T>{}[0])>;

// ---- product -------------------------------------------------------------------------------------

#if defined(__AVX512F__)
constexpr int WIDE = 64, ROWS = 16;  // bytes of a register; sums of so many rows at a time
#else
constexpr int WIDE = 32, ROWS = 8;
#endif
template <class X>
using Row = Vector<X, WIDE / sizeof(X) < 8 ? WIDE / sizeof(X) : 8>;

// a b + c with one rounding. EXACT: the product has no more bits than an f64, so that two
// instructions give the same.
template <bool EXACT>
SIMT_INLINE Row<f64> multiply_add(f64 a, Row<f64> b, Row<f64> c) {
#if defined(__AVX512F__)
    return _mm512_fmadd_pd(_mm512_set1_pd(a), b, c);
#elif defined(__FMA__)
    return _mm256_fmadd_pd(_mm256_set1_pd(a), b, c);
#else
    if (EXACT) return a * b + c;
    for (int j = 0; j < 4; j++) c[j] = __builtin_fma(a, b[j], c[j]);
    return c;
#endif
}
template <bool>
SIMT_INLINE Row<f32> multiply_add(f32 a, Row<f32> b, Row<f32> c) {
#if defined(__FMA__)
    return _mm256_fmadd_ps(_mm256_set1_ps(a), b, c);
#else
    return a * b + c;
#endif
}

// c += a b, in the order of k, some rows of sums at a time in registers.
template <bool EXACT, int M, int N, int K, class X>
void multiply(const X (&a)[M][K], const X (&b)[K][N], X (&c)[M][N]) {
    constexpr int COLUMNS = sizeof(Row<X>) / sizeof(X), STEP = M < ROWS ? M : ROWS;
    for (int j = 0; j < N; j += COLUMNS)
        for (int i = 0; i < M; i += STEP) {
            Row<X> sum[STEP];
#pragma GCC unroll 16
            for (int r = 0; r < STEP; r++) sum[r] = fetch<Row<X>>(&c[i + r][j]);
            for (int k = 0; k < K; k++) {
                const auto row = fetch<Row<X>>(&b[k][j]);
#pragma GCC unroll 16
                for (int r = 0; r < STEP; r++)
                    sum[r] = multiply_add<EXACT>(a[i + r][k], row, sum[r]);
            }
#pragma GCC unroll 16
            for (int r = 0; r < STEP; r++) memcpy(&c[i + r][j], &sum[r], sizeof sum[r]);
        }
}

// Puts lanes `at` to `at` + 7 of a register where the mask allows it.
template <class V, class Word>
SIMT_INLINE void put(u32 mask, u32 at, V from, Word* to) {
    static_assert(sizeof from == 8 * sizeof(Word), "");
    if (mask == ALL) {
        memcpy(to + at, &from, sizeof from);
        return;
    }
    for (u32 l = 0; l < 8; l++)
        if (mask >> (at + l) & 1) to[at + l] = from[l];
}

// Every lane of the warp must take part in a .aligned instruction.
inline void together(Warp& W, u32 site, u32 mask) {
    if (mask != ALL) not_converged(W, site, mask);
}

}  // namespace tensor
