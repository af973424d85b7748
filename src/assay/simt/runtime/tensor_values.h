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
using Signed8 = Vector<s32, 8>;
using Bits8 = Vector<u32, 8>;
using Wide8 = Vector<u64, 8>;
using Single8 = Vector<f32, 8>;
using Double8 = Vector<f64, 8>;
using Bits4 = Vector<u32, 4>;
using Single4 = Vector<f32, 4>;
using Double4 = Vector<f64, 4>;

// A vector from memory that need not be aligned, and back.
template <class V>
SIMT_INLINE V fetch(const void* from) {
    V v;
    memcpy(&v, from, sizeof v);
    return v;
}

// Eight bytes as words.
SIMT_INLINE Bits8 fetch_bytes(const void* from) {
#if defined(__AVX2__)
    const __m128i bytes = _mm_loadl_epi64(static_cast<const __m128i*>(from));
    return bit_cast<Bits8>(_mm256_cvtepu8_epi32(bytes));
#else
    return __builtin_convertvector(fetch<Byte8>(from), Bits8);
#endif
}

// Puts eight numbers down, as they are multiplied.
SIMT_INLINE void keep(Single8 x, f32* to) { memcpy(to, &x, sizeof x); }
SIMT_INLINE void keep(Double8 x, f64* to) { memcpy(to, &x, sizeof x); }
SIMT_INLINE void keep(Single8 x, f64* to) {
#if defined(__AVX512F__)
    keep(_mm512_cvtps_pd(x), to);
#else
    Single4 halves[2];
    memcpy(halves, &x, sizeof x);
    for (int h = 0; h < 2; h++) {
        const auto wide = __builtin_convertvector(halves[h], Double4);
        memcpy(to + 4 * h, &wide, sizeof wide);
    }
#endif
}

// ---- values of elements -------------------------------------------------------------------------

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

// ---- rounding of sums ---------------------------------------------------------------------------

SIMT_INLINE bool any(Signed8 condition) {
#if defined(__AVX__)
    return !_mm256_testz_si256(bit_cast<__m256i>(condition), bit_cast<__m256i>(condition));
#else
    const auto words = bit_cast<Vector<u64, 4>>(condition);
    return (words[0] | words[1] | words[2] | words[3]) != 0;
#endif
}

// A condition on four f64 as one on four f32.
SIMT_INLINE Bits4 narrowed(Vector<s64, 4> condition) {
    const Bits8 even = {0, 2, 4, 6, 0, 2, 4, 6};
    const Bits8 words = __builtin_shuffle(bit_cast<Bits8>(condition), even);
    return fetch<Bits4>(&words);
}

// Eight sums as f32, toward zero; infinities and NaN as they are. With `odd`, the last bit is set
// where anything was cut off: that rounds further as the sum itself would.
template <bool ODD>
SIMT_INLINE Bits8 toward_zero(const f64* sums) {
#if defined(__AVX512F__)
    const auto x = fetch<__m512d>(sums);
    const __m256 cut = _mm512_cvt_roundpd_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    if (!ODD) return bit_cast<Bits8>(cut);
    const __mmask8 inexact = _mm512_cmp_pd_mask(_mm512_cvtps_pd(cut), x, _CMP_NEQ_UQ);
    return bit_cast<Bits8>(cut) | bit_cast<Bits8>(_mm512_castsi512_si256(
                                      _mm512_maskz_set1_epi32(inexact, 1)));
#else
    Bits4 made[2];
    for (int h = 0; h < 2; h++) {
        const auto x = fetch<Double4>(sums + 4 * h);
        const auto nearest = __builtin_convertvector(x, Single4);
        const auto back = __builtin_convertvector(nearest, Double4);
        const auto away = x < 0 ? back < x : back > x;  // 0 or -1
        const auto bits = bit_cast<Bits4>(nearest);
        const auto cut = bits + narrowed(away);
        const auto inexact = narrowed(back != x);
        made[h] = ODD ? cut | (inexact & 1) : cut;
    }
    const Bits4 a = made[0], b = made[1];
#if defined(__AVX__)
    return bit_cast<Bits8>(_mm256_set_m128i(bit_cast<__m128i>(b), bit_cast<__m128i>(a)));
#else
    return Bits8{a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]};
#endif
#endif
}

// To f32, toward zero. 2^128 and more is infinity, less is at most the largest f32.
SIMT_INLINE Bits8 rounded_f32(const f64* sums) {
    Bits8 cut = toward_zero<false>(sums);
    if (__builtin_expect(any((cut & 0x7FFFFFFF) >= 0x7F7FFFFF), 0))
        for (int j = 0; j < 8; j++) {
            if (__builtin_fabs(sums[j]) >= 0x1p128) cut[j] = (cut[j] & 0x80000000) | 0x7F800000;
            if (sums[j] != sums[j]) cut[j] = 0x7FFFFFFF;
        }
    return cut;
}

// To f16, to nearest even.
SIMT_INLINE Half8 rounded_f16(const f64* sums) {
    const Bits8 odd = toward_zero<true>(sums), size = odd & 0x7FFFFFFF;
#if defined(__F16C__)
    const auto near = _mm256_cvtps_ph(bit_cast<__m256>(odd), _MM_FROUND_TO_NEAREST_INT);
    auto bits = bit_cast<Half8>(near);
#else
    // Adding half a last bit, less one where that bit is 0, carries as rounding does. A subnormal
    // is m 2^-24: added to 1/2 it leaves m, rounded, in an f32's low bits.
    const Bits8 carried = size + 0xFFF + (size >> 13 & 1), half = Bits8{} + (126u << 23);
    const auto raised = bit_cast<Single8>(size) + bit_cast<Single8>(half);
    const Bits8 tiny = bit_cast<Bits8>(raised) - half, normal = (carried - (112u << 23)) >> 13;
    const Bits8 finite = size < 113u << 23 ? tiny : normal;
    const Bits8 magnitude = size >= 143u << 23 ? Bits8{} + 0x7C00 : finite;
    auto bits = __builtin_convertvector(magnitude | (odd >> 16 & 0x8000), Half8);
#endif
    if (__builtin_expect(any(size > 0x7F800000), 0))
        for (int j = 0; j < 8; j++)
            if (sums[j] != sums[j]) bits[j] = 0x7FFF;
    return bits;
}

// ---- types --------------------------------------------------------------------------------------

// Of a type of multiplicands: Number, what is multiplied; of(), numbers of eight elements. Integers
// are f32: products of 8 bits and their sums over 64 k have at most 22 bits, so nothing is rounded.
template <class T>
struct Value;

template <>
struct Value<F16> {
    using Number = f64;
    SIMT_INLINE Single8 of(Half8 x) { return half_values(x); }
};
template <>
struct Value<BF16> {
    using Number = f64;
    SIMT_INLINE Single8 of(Half8 x) {
        return bit_cast<Single8>(__builtin_convertvector(x, Bits8) << 16);
    }
};
template <>
struct Value<TF32> {
    using Number = f64;
    SIMT_INLINE Single8 of(Bits8 x) { return bit_cast<Single8>(x & 0xFFFFE000); }
};
template <>
struct Value<F64> {
    using Number = f64;
    SIMT_INLINE Double8 of(Wide8 x) { return bit_cast<Double8>(x); }
};
template <>
struct Value<E4M3> {
    using Number = f64;
    SIMT_INLINE Single8 of(Bits8 x) { return e4m3_values(x); }
};
template <>
struct Value<E5M2> {
    using Number = f64;
    SIMT_INLINE Single8 of(Bits8 x) {
        return half_values(__builtin_convertvector(x << 8, Half8));
    }
};
SIMT_INLINE Single8 signed_values(Bits8 x) {
    return __builtin_convertvector(bit_cast<Signed8>(x), Single8);
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
    SIMT_INLINE Single8 start(Half8 c) { return half_values(c); }
    SIMT_INLINE Half8 finish(const f64* sum, Half8) { return rounded_f16(sum); }
};
template <>
struct Sum<F32> {
    using Items = Bits8;
    SIMT_INLINE Single8 start(Bits8 c) { return bit_cast<Single8>(c); }
    SIMT_INLINE Bits8 finish(const f64* sum, Bits8) { return rounded_f32(sum); }
};
template <>
struct Sum<F64> {
    using Items = Wide8;
    SIMT_INLINE Double8 start(Wide8 c) { return bit_cast<Double8>(c); }
    SIMT_INLINE Wide8 finish(const f64* sum, Wide8) { return fetch<Wide8>(sum); }
};
template <>
struct Sum<S32> {
    using Items = Bits8;
    SIMT_INLINE Single8 start(Bits8) { return Single8{}; }
    SIMT_INLINE Bits8 finish(const f32* sum, Bits8 c) {
        return bit_cast<Bits8>(__builtin_convertvector(fetch<Single8>(sum), Signed8)) + c;
    }
};
template <>
struct Sum<CLAMPED> {
    using Items = Bits8;
    SIMT_INLINE Single8 start(Bits8) { return Single8{}; }
    SIMT_INLINE Bits8 finish(const f32* sum, Bits8 c) {
        const auto products = __builtin_convertvector(fetch<Single8>(sum), Signed8);
        const auto wrapped = bit_cast<Signed8>(bit_cast<Bits8>(products) + c);
        // Over: both have one sign and the sum the other. The limit has the sign that both have.
        const auto old = bit_cast<Signed8>(c);
        const auto over = ((products ^ wrapped) & (old ^ wrapped)) < 0;
        const auto limit = (old >> 31) ^ 0x7FFFFFFF;
        return bit_cast<Bits8>(over ? limit : wrapped);
    }
};

template <class T>
using Number = typename Value<T>::Number;
template <class T>
using Items = typename Sum<T>::Items;
template <class T>
using Item = std::remove_reference_t<decltype(Items<T>{}[0])>;

// ---- product ------------------------------------------------------------------------------------

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

// Every lane of the warp must take part in a .aligned instruction, or by its guard none: then it is
// left out, and the answer is no.
inline bool together(Warp& W, u32 site, u32 mask) {
    if (mask != ALL && mask) not_converged(W, site, mask);
    return mask != 0;
}

}  // namespace tensor
