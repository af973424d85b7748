// f16, bf16, tf32 and the 8-bit formats: conversions and arithmetic, each rounded once.
//
// Arithmetic is done in f32 (f16) or f64 (bf16), wide enough that one rounding is left, or rounded
// to odd first. Decoding and encoding are integer work without branches, so that they vectorise.
#pragma once

#include "rounding.h"

constexpr u16 HALF_NAN = 0x7FFF;

struct Float16 {
    static constexpr u32 infinity = 0x7C00;
    static constexpr u16 one = 0x3C00;
};
struct Brain16 {
    static constexpr u32 infinity = 0x7F80;
    static constexpr u16 one = 0x3F80;
};

template <class F>
SIMT_INLINE f32 decode(u16 half) {
    const u32 bits = half;
    if constexpr (std::is_same_v<F, Brain16>) return bit_cast<f32>(bits << 16);
    // The exponent is moved by a product, which normalises subnormals; infinity and NaN apart.
    const u32 moved = (bits & 0x7FFF) << 13;
    const u32 scaled = bit_cast<u32>(bit_cast<f32>(moved) * 0x1p112f);
    const u32 value = (bits & 0x7C00) == 0x7C00 ? moved | 0x7F800000u : scaled;
    return bit_cast<f32>(value | (bits & 0x8000) << 16);
}

// f32 to half, to nearest.
template <class F>
SIMT_INLINE u16 encode_nearest(f32 x) {
    const u32 bits = bit_cast<u32>(x), size = bits & 0x7FFFFFFFu, sign = bits >> 16 & 0x8000;
    if constexpr (std::is_same_v<F, Brain16>) {
        const u32 rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
        return static_cast<u16>(size > 0x7F800000u ? HALF_NAN : rounded);
    } else {
        // Subnormal results: at 0.5 and above a float's last place is that of a subnormal half.
        const f32 shifted = bit_cast<f32>(size) + 0.5f;
        const u32 small = bit_cast<u32>(shifted) - 0x3F000000u;
        const u32 normal = (size - 0x38000000u + 0xFFF + (size >> 13 & 1)) >> 13;
        const u32 rounded = size < 0x38800000u ? small : size < 0x477FF000u ? normal : 0x7C00;
        return static_cast<u16>(size > 0x7F800000u ? HALF_NAN : rounded | sign);
    }
}
template <class F, Round R>
SIMT_INLINE u16 encode(f32 x) {
    const u16 nearest = encode_nearest<F>(x);
    if constexpr (R == Round::N) return nearest;
    const f32 back = decode<F>(nearest);
    return settle_bits<R, u16>(nearest, x > back, x < back);
}
template <class F, Round R>
SIMT_INLINE u16 encode(f64 x) {
    return encode<F, R>(narrow_odd(x));
}
template <class F, Round R, class I>
SIMT_INLINE u16 encode_integer(I x) {
    return encode<F, R>(from_integer_odd<I>(x));
}

// ---- .ftz, .sat, .relu, .satfinite on halves
template <class F>
SIMT_INLINE bool half_nan(u16 x) {
    return (x & 0x7FFFu) > F::infinity;
}
template <class F, bool On>
SIMT_INLINE u16 half_flush(u16 x) {
    constexpr u32 exponent = F::infinity;
    return static_cast<u16>(On && (x & exponent) == 0 ? x & 0x8000 : x);
}
template <class F, bool Sat>
SIMT_INLINE u16 half_saturate(u16 x) {  // to [+0, 1]; NaN to +0
    if (!Sat) return x;
    return static_cast<u16>(x & 0x8000 || half_nan<F>(x) ? 0 : x > F::one ? F::one : x);
}
template <class F, bool Relu>
SIMT_INLINE u16 half_relu(u16 x) {  // negative to +0; NaN stays
    if (!Relu) return x;
    return static_cast<u16>(half_nan<F>(x) ? HALF_NAN : x & 0x8000 ? 0 : x);
}
template <class F, bool On>
SIMT_INLINE u16 half_finite(u16 x) {  // infinity to the largest number
    return static_cast<u16>(On && (x & 0x7FFFu) == F::infinity ? x - 1 : x);
}

// ---- arithmetic
//
// f16 in f32: a sum, difference or product of two has one rounding or one that is innocuous
// (24 >= 2 * 11 + 2). bf16 in f64, as an f32 product may be subnormal and round once too often.
template <class F>
using Wide = std::conditional_t<std::is_same_v<F, Float16>, f32, f64>;

template <class F, bool Ftz>
SIMT_INLINE Wide<F> operand(u16 x) {
    return decode<F>(half_flush<F, Ftz>(x));
}
// Encoded; what is subnormal when rounded to 11 bits, however small its exponent, becomes zero.
template <class F, bool Ftz, bool Sat, bool Relu>
SIMT_INLINE u16 half_result(Wide<F> x) {
    if constexpr (Ftz) {
        static_assert(std::is_same_v<F, Float16>, "only f16 has .ftz");
        const bool tiny = __builtin_fabsf(x) < 0x1.FFEp-15f;  // halfway to 2^-14, which is even
        x = bit_cast<f32>(bit_cast<u32>(x) & (tiny ? 0x80000000u : ~0u));
    }
    return half_relu<F, Relu>(half_saturate<F, Sat>(encode<F, Round::N>(x)));
}
template <class F, bool Ftz, bool Sat>
SIMT_INLINE u16 half_add(u16 a, u16 b) {
    using W = Wide<F>;
    const W x = operand<F, Ftz>(a), y = operand<F, Ftz>(b), sum = x + y;
    return half_result<F, Ftz, Sat, false>(odd<W>(sum, lost<W>(x, y, sum)));
}
template <class F, bool Ftz, bool Sat>
SIMT_INLINE u16 half_sub(u16 a, u16 b) {
    return half_add<F, Ftz, Sat>(a, static_cast<u16>(b ^ 0x8000));
}
template <class F, bool Ftz, bool Sat>
SIMT_INLINE u16 half_mul(u16 a, u16 b) {
    const Wide<F> product = operand<F, Ftz>(a) * operand<F, Ftz>(b);
    return half_result<F, Ftz, Sat, false>(product);
}
template <class F, bool Ftz, bool Sat, bool Relu>
SIMT_INLINE u16 half_fma(u16 a, u16 b, u16 c) {
    using W = Wide<F>;
    const W product = operand<F, Ftz>(a) * operand<F, Ftz>(b);  // exact
    const W addend = operand<F, Ftz>(c), sum = product + addend;
    return half_result<F, Ftz, Sat, Relu>(odd<W>(sum, lost<W>(product, addend, sum)));
}
template <class F, bool Ftz>
SIMT_INLINE u16 half_neg(u16 a) {
    const u16 x = half_flush<F, Ftz>(a);
    return static_cast<u16>(half_nan<F>(x) ? HALF_NAN : x ^ 0x8000);
}
template <class F, bool Ftz>
SIMT_INLINE u16 half_abs(u16 a) {
    const u16 x = half_flush<F, Ftz>(a);
    return static_cast<u16>(half_nan<F>(x) ? HALF_NAN : x & 0x7FFF);
}
template <class F, bool Larger, bool Ftz, bool Nan, bool Xor>
SIMT_INLINE u16 half_extreme(u16 a, u16 b) {
    const u16 x = half_flush<F, Ftz>(a), y = half_flush<F, Ftz>(b);
    const u16 sign = Xor ? (x ^ y) & 0x8000 : 0;
    const u16 p = Xor ? x & 0x7FFF : x, q = Xor ? y & 0x7FFF : y;
    const f32 u = decode<F>(p), v = decode<F>(q);
    const bool first =
        Larger ? u > v || (u == v && !(p & 0x8000)) : u < v || (u == v && (p & 0x8000));
    const bool lost_p = u != u, lost_q = v != v;
    const u16 chosen = first ? p : q;
    const u16 result = Nan ? (lost_p || lost_q ? HALF_NAN : chosen)
                           : (lost_p ? (lost_q ? HALF_NAN : q) : lost_q ? p : chosen);
    return static_cast<u16>(result | sign);
}

template <class F, bool Ftz, Test K>
SIMT_INLINE u32 half_test(u16 a, u16 b) {
    return test<K, f32>(decode<F>(half_flush<F, Ftz>(a)), decode<F>(half_flush<F, Ftz>(b)));
}

// ---- two in a word
template <u16 (*F)(u16)>
SIMT_INLINE u32 both(u32 a) {
    return F(static_cast<u16>(a)) | static_cast<u32>(F(static_cast<u16>(a >> 16))) << 16;
}
template <u16 (*F)(u16, u16)>
SIMT_INLINE u32 both(u32 a, u32 b) {
    return F(static_cast<u16>(a), static_cast<u16>(b)) |
           static_cast<u32>(F(static_cast<u16>(a >> 16), static_cast<u16>(b >> 16))) << 16;
}
template <u16 (*F)(u16, u16, u16)>
SIMT_INLINE u32 both(u32 a, u32 b, u32 c) {
    return F(static_cast<u16>(a), static_cast<u16>(b), static_cast<u16>(c)) |
           static_cast<u32>(F(static_cast<u16>(a >> 16), static_cast<u16>(b >> 16),
                              static_cast<u16>(c >> 16)))
               << 16;
}
SIMT_INLINE u32 pack(u16 high, u16 low) { return static_cast<u32>(high) << 16 | low; }

// ---- cvt to and from halves
template <class F, Round R, bool Sat, bool Relu, bool Finite>
SIMT_INLINE u16 to_half(f32 x) {
    const u16 half = half_finite<F, Finite>(encode<F, R>(x));
    return half_relu<F, Relu>(half_saturate<F, Sat>(half));
}

// ---- tf32: a float whose last 13 bits are zero
//
// Infinities and NaN as an H100 has them, where the ISA is silent: ties away (rna) only cuts them,
// so that a NaN may become infinity, and .satfinite takes one step off; else a NaN is 0x7FFFE000.
template <bool Finite>
SIMT_INLINE u32 to_tf32_away(f32 x) {
    const u32 bits = bit_cast<u32>(x), size = bits & 0x7FFFFFFFu;
    const u32 rounded = (bits + (size < 0x7F800000u ? 0x1000 : 0)) & ~0x1FFFu;
    return rounded - (Finite && (rounded & 0x7FFFFFFFu) >= 0x7F800000u ? 0x2000 : 0);
}
template <Round R, bool Relu>
SIMT_INLINE u32 to_tf32(f32 x) {
    const u32 bits = bit_cast<u32>(x), size = bits & 0x7FFFFFFFu;
    const u32 add = R == Round::Z ? 0 : 0xFFF + (bits >> 13 & 1);
    const u32 rounded = (bits + (size < 0x7F800000u ? add : 0)) & ~0x1FFFu;
    return size > 0x7F800000u ? 0x7FFFE000u : Relu && bits >> 31 ? 0 : rounded;
}

// ---- 8-bit formats
template <int Mantissa>
struct F8 {  // 3: e4m3, no infinity; 2: e5m2
    static constexpr int bias = Mantissa == 3 ? 7 : 15;
    static constexpr u32 largest = Mantissa == 3 ? 0x7E : 0x7B;
};
template <int Mantissa>
SIMT_INLINE u32 encode8(f32 x, bool relu) {  // nearest; beyond the largest: the largest
    using F = F8<Mantissa>;
    constexpr int drop = 23 - Mantissa;
    constexpr u32 least = static_cast<u32>(127 - F::bias + 1) << 23;  // smallest normal number
    const u32 bits = bit_cast<u32>(x), size = bits & 0x7FFFFFFFu, sign = bits >> 24 & 0x80;
    // Below it, adding this makes a float's last place that of a subnormal number.
    constexpr u32 magic = static_cast<u32>(127 - F::bias + 1 + drop) << 23;
    const u32 small = bit_cast<u32>(bit_cast<f32>(size) + bit_cast<f32>(magic)) - magic;
    constexpr u32 shift = static_cast<u32>(127 - F::bias) << 23;
    const u32 normal = (size - shift + (1u << (drop - 1)) - 1 + (size >> drop & 1)) >> drop;
    const u32 wide = size < least ? small : normal;
    const u32 rounded = size >= 0x7F800000u || wide > F::largest ? F::largest : wide;
    return size > 0x7F800000u ? 0x7F : relu && sign ? 0 : rounded | sign;
}
template <int Mantissa>
SIMT_INLINE f32 decode8(u32 byte) {
    using F = F8<Mantissa>;
    const u32 size = byte & 0x7F, moved = size << (23 - Mantissa);
    const u32 scaled = bit_cast<u32>(bit_cast<f32>(moved) *
                                     bit_cast<f32>(static_cast<u32>(254 - F::bias) << 23));
    const u32 special = size > (Mantissa == 3 ? 0x7Eu : 0x7Cu) ? 0x7FFFFFFFu : 0x7F800000u;
    const bool finite = Mantissa == 3 ? size < 0x7F : size < 0x7C;
    return bit_cast<f32>((finite ? scaled : special) | (byte & 0x80) << 24);
}
template <int Mantissa>
SIMT_INLINE u16 pack8(f32 high, f32 low, bool relu) {
    return static_cast<u16>(encode8<Mantissa>(high, relu) << 8 | encode8<Mantissa>(low, relu));
}
template <int Mantissa>
SIMT_INLINE u32 unpack8(u16 pair, bool relu) {
    const u16 low = encode<Float16, Round::N>(decode8<Mantissa>(pair & 0xFF));
    const u16 high = encode<Float16, Round::N>(decode8<Mantissa>(pair >> 8));
    return relu ? pack(half_relu<Float16, true>(high), half_relu<Float16, true>(low)) : pack(high, low);
}

// What atom.add gives.
SIMT_INLINE u16 f16_add(u16 a, u16 b) { return half_add<Float16, false, false>(a, b); }
SIMT_INLINE u16 bf16_add(u16 a, u16 b) { return half_add<Brain16, false, false>(a, b); }
