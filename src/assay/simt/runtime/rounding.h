// Floating-point arithmetic in the four rounding modes of PTX, with .ftz and .sat.
//
// The result rounded to nearest is the hardware's. For a directed mode the sign of what rounding
// lost is found exactly, from an error-free transformation or in a type twice as wide, and the
// result moves by one step where it lies on the wrong side. No branches, so that it vectorises.
#pragma once

#include "numbers.h"

enum class Round { N, Z, M, P };

#ifdef __SIZEOF_FLOAT128__
using f128 = __float128;
#else
using f128 = long double;  // on AArch64 it has 113 bits too
#endif
template <class T>
using Double = std::conditional_t<sizeof(T) == 4, f64, f128>;  // holds a product of two T exactly
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, u32, std::conditional_t<sizeof(T) == 2, u16, u64>>;

constexpr f32 INFINITE = __builtin_inff();

template <class B>
SIMT_INLINE B next_up(B bits) {  // of a sign and magnitude number
    constexpr B sign = static_cast<B>(static_cast<B>(1) << (8 * sizeof(B) - 1));
    return static_cast<B>((bits & ~sign) == 0 ? 1 : bits & sign ? bits - 1 : bits + 1);
}
template <class B>
SIMT_INLINE B next_down(B bits) {
    constexpr B sign = static_cast<B>(static_cast<B>(1) << (8 * sizeof(B) - 1));
    return static_cast<B>((bits & ~sign) == 0 ? sign | 1 : bits & sign ? bits + 1 : bits - 1);
}

// above, below: how the true value lies to the nearest one, whose bits these are.
template <Round R, class B>
SIMT_INLINE B settle_bits(B bits, bool above, bool below) {
    constexpr B sign = static_cast<B>(static_cast<B>(1) << (8 * sizeof(B) - 1));
    if constexpr (R == Round::M) return below ? next_down(bits) : bits;
    if constexpr (R == Round::P) return above ? next_up(bits) : bits;
    if constexpr (R == Round::Z) {
        const B minus = static_cast<B>(bits >> (8 * sizeof(B) - 1)), nonzero = (bits & ~sign) != 0;
        const B outside = static_cast<B>((minus & above) | ((minus ^ 1) & below));
        return static_cast<B>(bits - (outside & nonzero));
    }
    return bits;
}
template <Round R, class T>
SIMT_INLINE T settle(T nearest, bool above, bool below) {
    if constexpr (R == Round::N)
        return nearest;
    else
        return bit_cast<T>(settle_bits<R>(bit_cast<Bits<T>>(nearest), above, below));
}

// What rounding lost in sum = a + b (Dekker: exact when the larger comes first; no overflow in it).
template <class T>
SIMT_INLINE T lost(T a, T b, T sum) {
    const bool order = (a < 0 ? -a : a) >= (b < 0 ? -b : b);
    const T large = order ? a : b, small = order ? b : a;
    return small - (sum - large);
}
template <class T>
SIMT_INLINE bool negative(T x) {
    return bit_cast<Bits<T>>(x) >> (8 * sizeof(T) - 1);
}

template <Round R, class T>
SIMT_INLINE T rounded_add(T a, T b) {
    const T sum = a + b;
    if constexpr (R == Round::N) return sum;
    const T error = lost<T>(a, b, sum);
    constexpr T inf = INFINITE;
    const bool finite = (a < 0 ? -a : a) < inf && (b < 0 ? -b : b) < inf;
    const T result = settle<R, T>(sum, error > 0 || (finite && sum == -inf),
                                  error < 0 || (finite && sum == inf));
    // A sum that is exactly zero is -0 in this mode, unless both are +0.
    if constexpr (R == Round::M)
        return sum == 0 && (negative(a) || negative(b)) ? -static_cast<T>(0) : result;
    return result;
}
template <Round R, class T>
SIMT_INLINE T rounded_sub(T a, T b) {
    return rounded_add<R, T>(a, -b);
}
template <Round R, class T>
SIMT_INLINE T rounded_mul(T a, T b) {
    const T product = a * b;
    if constexpr (R == Round::N) return product;
    const Double<T> exact = static_cast<Double<T>>(a) * static_cast<Double<T>>(b);
    return settle<R, T>(product, exact > product, exact < product);
}
SIMT_INLINE f32 nearest_fma(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
SIMT_INLINE f64 nearest_fma(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }

template <Round R, class T>
SIMT_INLINE T rounded_fma(T a, T b, T c) {
    const T nearest = nearest_fma(a, b, c);
    if constexpr (R == Round::N) return nearest;
    using D = Double<T>;
    // The sign of a b + c - nearest: a b is exact, nearest - c is apart + error.
    const D product = static_cast<D>(a) * static_cast<D>(b);
    const D apart = static_cast<D>(nearest) - static_cast<D>(c);
    const D error = lost<D>(nearest, -static_cast<D>(c), apart);
    const T result =
        settle<R, T>(nearest, product > apart || (product == apart && error < 0),
                     product < apart || (product == apart && error > 0));
    if constexpr (R == Round::M) {
        const bool plus = !(negative(a) ^ negative(b)) && !negative(c);
        return nearest == 0 && product == -static_cast<D>(c) && !plus ? -static_cast<T>(0) : result;
    }
    return result;
}
template <Round R, class T>
SIMT_INLINE T rounded_div(T a, T b) {
    const T quotient = a / b;
    if constexpr (R == Round::N) return quotient;
    const Double<T> back = static_cast<Double<T>>(quotient) * static_cast<Double<T>>(b);
    const bool more = a > back, less = a < back;
    return settle<R, T>(quotient, b > 0 ? more : less, b > 0 ? less : more);
}
SIMT_INLINE f32 nearest_sqrt(f32 x) { return __builtin_sqrtf(x); }
SIMT_INLINE f64 nearest_sqrt(f64 x) { return __builtin_sqrt(x); }
template <Round R, class T>
SIMT_INLINE T rounded_sqrt(T x) {
    const T root = nearest_sqrt(x);
    if constexpr (R == Round::N) return root;
    const Double<T> back = static_cast<Double<T>>(root) * static_cast<Double<T>>(root);
    return settle<R, T>(root, x > back, x < back);
}

// ---- .ftz and .sat
template <bool On>
SIMT_INLINE f32 flush(f32 x) {  // a subnormal becomes zero of its sign
    const u32 bits = bit_cast<u32>(x);
    return On ? bit_cast<f32>((bits & 0x7F800000u) == 0 ? bits & 0x80000000u : bits) : x;
}
template <bool On, class T>
SIMT_INLINE T saturate(T x) {  // NaN and -0 become +0
    return !On ? x : x > 0 ? (x < 1 ? x : static_cast<T>(1)) : static_cast<T>(0);
}
template <bool Ftz, bool Sat>
SIMT_INLINE f32 finish(f32 x) {
    return saturate<Sat>(flush<Ftz>(x));
}

template <Round R, bool F, bool S>
SIMT_INLINE f32 f32_add(f32 a, f32 b) {
    return finish<F, S>(rounded_add<R>(flush<F>(a), flush<F>(b)));
}
template <Round R, bool F, bool S>
SIMT_INLINE f32 f32_sub(f32 a, f32 b) {
    return finish<F, S>(rounded_sub<R>(flush<F>(a), flush<F>(b)));
}
// A result is flushed where it is subnormal once rounded to 24 bits, however small its exponent:
// so does an H100. Scaled by 2^60 nothing is subnormal, and that can be seen.
constexpr f32 SCALE = 0x1p60f, SCALED_LEAST = 0x1p-66f;

template <bool F, bool S>
SIMT_INLINE f32 finish_scaled(f32 x, f32 scaled) {
    const u32 bits = bit_cast<u32>(x);
    const bool tiny = F && __builtin_fabsf(scaled) < SCALED_LEAST;
    return saturate<S>(bit_cast<f32>(tiny ? bits & 0x80000000u : bits));
}
template <Round R, bool F, bool S>
SIMT_INLINE f32 f32_mul(f32 x, f32 y) {
    const f32 a = flush<F>(x), b = flush<F>(y);
    return finish_scaled<F, S>(rounded_mul<R>(a, b), rounded_mul<R>(a * SCALE, b));
}
template <Round R, bool F, bool S>
SIMT_INLINE f32 f32_fma(f32 x, f32 y, f32 z) {
    const f32 a = flush<F>(x), b = flush<F>(y), c = flush<F>(z);
    const f32 scaled = rounded_fma<R>(a * SCALE, b, c * SCALE);
    return finish_scaled<F, S>(rounded_fma<R>(a, b, c), scaled);
}
template <Round R, bool F>
SIMT_INLINE f32 f32_div(f32 x, f32 y) {
    const f32 a = flush<F>(x), b = flush<F>(y);
    return finish_scaled<F, false>(rounded_div<R>(a, b), rounded_div<R>(a * SCALE, b));
}
template <Round R, bool F>
SIMT_INLINE f32 f32_sqrt(f32 a) {
    return flush<F>(rounded_sqrt<R>(flush<F>(a)));
}

// ---- minimum and maximum: -0 below +0; a NaN loses, or wins where Nan is set
template <class T>
SIMT_INLINE T canonical_nan() {
    if constexpr (sizeof(T) == 4) return bit_cast<T>(0x7FFFFFFFu);
    else return bit_cast<T>(0x7FFFFFFFFFFFFFFFull);
}
template <bool Larger, bool Nan, class T>
SIMT_INLINE T extreme(T a, T b) {
    const bool first = Larger ? a > b || (a == b && !negative(a)) : a < b || (a == b && negative(a));
    const T chosen = first ? a : b;
    if constexpr (Nan) return a != a || b != b ? canonical_nan<T>() : chosen;
    return a != a ? b != b ? canonical_nan<T>() : b : b != b ? a : chosen;
}
template <bool Larger, bool F, bool Nan, bool Xor>
SIMT_INLINE f32 f32_extreme(f32 a, f32 b) {
    a = flush<F>(a);
    b = flush<F>(b);
    if constexpr (!Xor) return extreme<Larger, Nan, f32>(a, b);
    const u32 sign = (bit_cast<u32>(a) ^ bit_cast<u32>(b)) & 0x80000000u;
    const f32 chosen = extreme<Larger, Nan, f32>(__builtin_fabsf(a), __builtin_fabsf(b));
    return bit_cast<f32>(bit_cast<u32>(chosen) | sign);
}
template <class T>
SIMT_INLINE T sign_of_first(T sign, T value) {  // copysign
    constexpr Bits<T> top = static_cast<Bits<T>>(1) << (8 * sizeof(T) - 1);
    return bit_cast<T>(static_cast<Bits<T>>((bit_cast<Bits<T>>(sign) & top) |
                                            (bit_cast<Bits<T>>(value) & ~top)));
}

// ---- testp
enum class Kind { finite, infinite, number, notanumber, normal, subnormal };
template <Kind K, class T>
SIMT_INLINE u32 is_kind(T x) {
    constexpr Bits<T> one = 1;
    constexpr Bits<T> exponent = sizeof(T) == 4 ? static_cast<Bits<T>>(0x7F800000u)
                                                : static_cast<Bits<T>>(0x7FF0000000000000ull);
    const Bits<T> bits = bit_cast<Bits<T>>(x) & ~(one << (8 * sizeof(T) - 1));
    const Bits<T> part = bits & exponent;
    if (K == Kind::finite) return bits < exponent;
    if (K == Kind::infinite) return bits == exponent;
    if (K == Kind::number) return bits <= exponent;
    if (K == Kind::notanumber) return bits > exponent;
    if (K == Kind::normal) return bits == 0 || (part != 0 && part != exponent);  // zeros are
    return part == 0 && bits != 0;
}

// ---- narrowing
template <Round R>
SIMT_INLINE f32 narrow(f64 x) {
    const f32 nearest = static_cast<f32>(x);
    return settle<R, f32>(nearest, x > nearest, x < nearest);
}
template <Round R, bool F, bool S>
SIMT_INLINE f32 f64_to_f32(f64 x) {
    return finish_scaled<F, S>(narrow<R>(x), narrow<R>(x * SCALE));
}
// Rounded to odd: a later rounding to two bits fewer, in any mode, is as if done once.
template <class T>
SIMT_INLINE T odd(T sum, T error) {  // sum + error, error below half a unit of sum's last place
    const bool inexact = error > 0 || error < 0;
    const Bits<T> bits = bit_cast<Bits<T>>(sum);
    const Bits<T> cut = settle_bits<Round::Z>(bits, error > 0, error < 0);
    return bit_cast<T>(static_cast<Bits<T>>(inexact ? cut | 1 : bits));
}
SIMT_INLINE f32 narrow_odd(f64 x) {
    const f32 nearest = static_cast<f32>(x);
    const Bits<f32> cut = settle_bits<Round::Z>(bit_cast<u32>(nearest), x > nearest, x < nearest);
    return bit_cast<f32>(cut | (x > nearest || x < nearest ? 1u : 0u));
}

// ---- whole numbers to floating point
template <class F, Round R, class I>
SIMT_INLINE F from_integer(I x) {
    if constexpr (sizeof(I) <= 4 && sizeof(F) == 8) {
        return static_cast<F>(x);
    } else if constexpr (sizeof(I) <= 4) {
        return narrow<R>(static_cast<f64>(x));
    } else {
        const F nearest = static_cast<F>(x);
        if constexpr (R == Round::N) return nearest;
        // At most 2^64, so exact as a whole number of 128 bits.
        const s128 back = static_cast<s128>(nearest), exact = x;
        return settle<R, F>(nearest, exact > back, exact < back);
    }
}
template <class I>
SIMT_INLINE f32 from_integer_odd(I x) {
    if constexpr (sizeof(I) <= 4) return narrow_odd(static_cast<f64>(x));
    const f32 cut = from_integer<f32, Round::Z, I>(x);
    const bool inexact = static_cast<s128>(cut) != static_cast<s128>(x);
    return bit_cast<f32>(bit_cast<u32>(cut) | (inexact ? 1u : 0u));
}

// ---- floating point to whole numbers
SIMT_INLINE f32 whole(f32 x, std::integral_constant<Round, Round::N>) { return __builtin_rintf(x); }
SIMT_INLINE f32 whole(f32 x, std::integral_constant<Round, Round::Z>) { return __builtin_truncf(x); }
SIMT_INLINE f32 whole(f32 x, std::integral_constant<Round, Round::M>) { return __builtin_floorf(x); }
SIMT_INLINE f32 whole(f32 x, std::integral_constant<Round, Round::P>) { return __builtin_ceilf(x); }
SIMT_INLINE f64 whole(f64 x, std::integral_constant<Round, Round::N>) { return __builtin_rint(x); }
SIMT_INLINE f64 whole(f64 x, std::integral_constant<Round, Round::Z>) { return __builtin_trunc(x); }
SIMT_INLINE f64 whole(f64 x, std::integral_constant<Round, Round::M>) { return __builtin_floor(x); }
SIMT_INLINE f64 whole(f64 x, std::integral_constant<Round, Round::P>) { return __builtin_ceil(x); }
template <Round R, class F>
SIMT_INLINE F to_whole(F x) {
    return whole(x, std::integral_constant<Round, R>());
}

// Out of range: the nearest end. NaN: zero, or with a 64-bit side only the top bit set.
template <class I, Round R, class F>
SIMT_INLINE I to_integer(F x) {
    const F y = to_whole<R>(x);
    constexpr F below = static_cast<F>(SMALLEST<I>);         // exact: a power of two, or zero
    constexpr F beyond = static_cast<F>(LARGEST<I> / 2 + 1) * 2;  // exact: a power of two
    constexpr I nan = sizeof(I) == 8 || sizeof(F) == 8
                          ? static_cast<I>(static_cast<std::make_unsigned_t<I>>(1) << (WIDTH<I> - 1))
                          : static_cast<I>(0);
    // Through s32 where it holds them all: that conversion vectorises everywhere.
    using Via = std::conditional_t<sizeof(I) < 4, s32, I>;
    const bool inside = y > below && y < beyond;
    const I value = static_cast<I>(static_cast<Via>(inside ? y : static_cast<F>(0)));
    return y != y ? nan : y >= beyond ? LARGEST<I> : y <= below ? SMALLEST<I> : value;
}
