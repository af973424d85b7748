// The approximate functions: ex2, lg2, sin, cos, tanh, rcp, rsqrt, sqrt, div.
//
// Each is close to the true value (about one unit of the last place of f32), as no card's exact
// bits are public; forms/floating.py states how far a card may be from it. The coefficients were
// fitted at Chebyshev nodes of the ranges named. No branches, so that they vectorise.
#pragma once

#include "half.h"

constexpr f32 ROUNDING_F32 = 0x1.8p23f;  // adding it leaves a whole number in the last bits
constexpr f64 ROUNDING_F64 = 0x1.8p52;

SIMT_INLINE f32 power_of_two(s32 exponent) {  // -126 to 127
    return bit_cast<f32>(static_cast<u32>(exponent + 127) << 23);
}

// 2^x. On [-1/2, 1/2] a polynomial; the whole part in two factors, so that the product rounds once
// where the result is subnormal.
SIMT_INLINE f32 ex2(f32 x) {
    x = x < -160.0f ? -160.0f : x > 129.0f ? 129.0f : x;
    const f32 shifted = x + ROUNDING_F32;
    const s32 n = static_cast<s32>(bit_cast<u32>(shifted) - bit_cast<u32>(ROUNDING_F32));
    const f32 f = x - (shifted - ROUNDING_F32);
    f32 p = 0x1.44138ap-13f;
    p = __builtin_fmaf(p, f, 0x1.5f089p-10f);
    p = __builtin_fmaf(p, f, 0x1.3b2a54p-7f);
    p = __builtin_fmaf(p, f, 0x1.c6af6cp-5f);
    p = __builtin_fmaf(p, f, 0x1.ebfbep-3f);
    p = __builtin_fmaf(p, f, 0x1.62e43p-1f);
    p = __builtin_fmaf(p, f, 1.0f);
    const s32 held = x == x ? n : 0;
    const s32 half = held >> 1;
    return p * power_of_two(half) * power_of_two(held - half);
}

// log2 x = n + log2 m, m in [sqrt(1/2), sqrt 2); log2 m = 2/ln 2 atanh s with s = (m-1)/(m+1).
SIMT_INLINE f32 lg2(f32 x) {
    const bool small = x < 0x1p-126f;
    const u32 bits = bit_cast<u32>(small ? x * 0x1p32f : x);
    const u32 moved = bits - 0x3F3504F3u;  // sqrt(1/2)
    const s32 n = static_cast<s32>(moved) >> 23;
    const f32 m = bit_cast<f32>((moved & 0x7FFFFFu) + 0x3F3504F3u);
    const f32 s = (m - 1.0f) / (m + 1.0f), z = s * s;
    f32 p = 0x1.58aa64p-2f;
    p = __builtin_fmaf(p, z, 0x1.a5c972p-2f);
    p = __builtin_fmaf(p, z, 0x1.2777p-1f);
    p = __builtin_fmaf(p, z, 0x1.ec709ep-1f);
    // 2/ln 2 in two parts: s has an error of its own, so this is as good as s.
    const f32 tail = __builtin_fmaf(s, 0x1.777d1cp-25f, s * z * p);
    const f32 log = __builtin_fmaf(s, 0x1.715476p+1f, tail) + static_cast<f32>(n - (small ? 32 : 0));
    const f32 finite = x == 0 ? -INFINITE : log;
    return x < 0 || x != x ? canonical_nan<f32>() : x == INFINITE ? INFINITE : finite;
}

// Sine and cosine in f64: x less a multiple of pi/2, then a polynomial on [-pi/4, pi/4].
//
// Beyond about 2^50 no bit of the remainder is left and the result is only bounded by 1: no bound
// is stated for a card there either.
template <int Quarter>
SIMT_INLINE f32 circular(f32 angle) {
    const f64 x = angle;
    const f64 shifted = x * 0x1.45f306dc9c883p-1 + ROUNDING_F64;
    const f64 turns = shifted - ROUNDING_F64;
    const u32 quadrant = static_cast<u32>(bit_cast<u64>(shifted)) + Quarter;
    f64 r = __builtin_fma(-turns, 0x1.921fb54442d18p+0, x);
    r = __builtin_fma(-turns, 0x1.1a62633145c07p-54, r);
    r = r > 0.79 ? 0.79 : r < -0.79 ? -0.79 : r;
    const f64 z = r * r;
    f64 s = -2.48056117121220764e-8, c = -2.72371085762445682e-7;
    s = __builtin_fma(s, z, 2.75559906647289668e-6);
    c = __builtin_fma(c, z, 2.47998618463614441e-5);
    s = __builtin_fma(s, z, -1.98412669161106329e-4);
    c = __builtin_fma(c, z, -1.38888850902628952e-3);
    s = __builtin_fma(s, z, 8.33333333107832294e-3);
    c = __builtin_fma(c, z, 4.16666666373843873e-2);
    s = __builtin_fma(s, z, -1.66666666666638845e-1);
    c = __builtin_fma(c, z, -4.99999999999638733e-1);
    s = __builtin_fma(s * z, r, r);
    c = __builtin_fma(c, z, 1.0);
    const f64 value = quadrant & 1 ? c : s;
    const f32 result = static_cast<f32>(quadrant & 2 ? -value : value);
    const f32 with_zero = Quarter == 0 && angle == 0 ? angle : result;
    return __builtin_fabsf(angle) < INFINITE ? with_zero : canonical_nan<f32>();
}

// tanh: an odd polynomial where the other form would cancel, else 1 - 2 / (e^2x + 1).
SIMT_INLINE f32 tanh_of(f32 x) {
    const f32 size = __builtin_fabsf(x), z = x * x;
    f32 p = 0x1.2977d8p-9f;
    p = __builtin_fmaf(p, z, -0x1.10bbf4p-7f);
    p = __builtin_fmaf(p, z, 0x1.648e8ep-6f);
    p = __builtin_fmaf(p, z, -0x1.ba0718p-5f);
    p = __builtin_fmaf(p, z, 0x1.1110e4p-3f);
    p = __builtin_fmaf(p, z, -0x1.555556p-2f);
    const f32 small = __builtin_fmaf(x * z, p, x);
    const f32 large = 1.0f - 2.0f / (ex2(size * 0x1.715476p+1f) + 1.0f);
    const f32 result = sign_of_first<f32>(x, size < 0.6f ? small : large);
    return x != x ? canonical_nan<f32>() : result;
}

template <bool F>
SIMT_INLINE f32 f32_ex2(f32 x) {
    return flush<F>(ex2(flush<F>(x)));
}
template <bool F>
SIMT_INLINE f32 f32_lg2(f32 x) {
    return flush<F>(lg2(flush<F>(x)));
}
template <bool F>
SIMT_INLINE f32 f32_sin(f32 x) {
    return flush<F>(circular<0>(flush<F>(x)));
}
template <bool F>
SIMT_INLINE f32 f32_cos(f32 x) {
    return flush<F>(circular<1>(flush<F>(x)));
}
template <bool F>
SIMT_INLINE f32 f32_rsqrt(f32 x) {
    return 1.0f / __builtin_sqrtf(flush<F>(x));
}

// div.approx is a times an approximate 1/b, which is zero where it would be subnormal.
template <bool F>
SIMT_INLINE f32 f32_div_approx(f32 a, f32 b) {
    const f32 x = flush<F>(a), y = flush<F>(b), size = __builtin_fabsf(y);
    const f32 zero = bit_cast<f32>(bit_cast<u32>(y) & 0x80000000u) * x;  // NaN for an infinite a
    return flush<F>(size > 0x1p126f && size < INFINITE ? zero : x / y);
}

// f64: a gross approximation, of which only the upper 32 bits are kept and asked for.
SIMT_INLINE f64 upper_part(f64 x) {
    const u64 bits = bit_cast<u64>(x);
    const u64 flushed = (bits & 0x7FF0000000000000ull) == 0 ? bits & 0x8000000000000000ull : bits;
    return bit_cast<f64>(flushed & 0xFFFFFFFF00000000ull);
}
SIMT_INLINE f64 f64_rcp_gross(f64 x) { return upper_part(1.0 / upper_part(x)); }
SIMT_INLINE f64 f64_rsqrt_gross(f64 x) { return upper_part(1.0 / __builtin_sqrt(upper_part(x))); }

// ---- halves: the f32 function, rounded
template <class F, bool Ftz>
SIMT_INLINE u16 half_ex2(u16 x) {
    return half_flush<F, Ftz>(encode<F, Round::N>(ex2(decode<F>(half_flush<F, Ftz>(x)))));
}
template <class F>
SIMT_INLINE u16 half_tanh(u16 x) {
    return encode<F, Round::N>(tanh_of(decode<F>(x)));
}
