// Numbers as PTX has them: fixed-width types, bit casts, and integer arithmetic that wraps.
//
// Integer work is done unsigned in at least 32 bits, where C++ defines what overflow gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s8 = int8_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;
using f32 = float;
using f64 = double;
using u128 = unsigned __int128;
using s128 = __int128;

// A macro, as no template can put an attribute and a linkage on a function.
#define SIMT_INLINE static inline __attribute__((always_inline))

template <class To, class From>
SIMT_INLINE To bit_cast(From from) {
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

template <class T>
using Work = std::conditional_t<sizeof(T) <= 4, u32, u64>;
template <class T>
constexpr u32 WIDTH = 8 * sizeof(T);
template <class T>
constexpr bool SIGNED = std::is_signed_v<T>;
template <class T>
constexpr T LARGEST =
    static_cast<T>(SIGNED<T> ? ~(1ull << (WIDTH<T> - 1)) & (~0ull >> (64 - WIDTH<T>)) : ~0ull);
template <class T>
constexpr T SMALLEST = static_cast<T>(SIGNED<T> ? 1ull << (WIDTH<T> - 1) : 0);
template <class T>
using Wider = std::conditional_t<
    SIGNED<T>, std::conditional_t<sizeof(T) == 2, s32, std::conditional_t<sizeof(T) == 4, s64, s128>>,
    std::conditional_t<sizeof(T) == 2, u32, std::conditional_t<sizeof(T) == 4, u64, u128>>>;

template <class T>
SIMT_INLINE T wrap_add(T a, T b) {
    return static_cast<T>(static_cast<Work<T>>(a) + static_cast<Work<T>>(b));
}
template <class T>
SIMT_INLINE T wrap_sub(T a, T b) {
    return static_cast<T>(static_cast<Work<T>>(a) - static_cast<Work<T>>(b));
}
template <class T>
SIMT_INLINE T wrap_mul(T a, T b) {
    return static_cast<T>(static_cast<Work<T>>(a) * static_cast<Work<T>>(b));
}
template <class T>
SIMT_INLINE T wrap_neg(T a) {
    return static_cast<T>(0 - static_cast<Work<T>>(a));
}
template <class T>
SIMT_INLINE T smaller(T a, T b) {
    return a < b ? a : b;
}
template <class T>
SIMT_INLINE T larger(T a, T b) {
    return a > b ? a : b;
}
template <class T, class From>
SIMT_INLINE T clamp_to(From x) {  // From holds every value of T
    constexpr From low = SMALLEST<T>, high = LARGEST<T>;
    return static_cast<T>(x < low ? low : x > high ? high : x);
}

template <class T>
SIMT_INLINE Wider<T> wide_mul(T a, T b) {  // no overflow but of u16 taken as int, so unsigned there
    return static_cast<Wider<T>>(static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b));
}
template <class T>
SIMT_INLINE T high_mul(T a, T b) {
    return static_cast<T>(wide_mul<T>(a, b) >> WIDTH<T>);
}
template <class T>
SIMT_INLINE T magnitude(T a) {
    return a < 0 ? wrap_neg<T>(a) : a;
}
template <class T>
SIMT_INLINE T distance_plus(T a, T b, T c) {  // sad
    return wrap_add<T>(c, a < b ? wrap_sub<T>(b, a) : wrap_sub<T>(a, b));
}

// A division by zero gives all ones, and the smallest over -1 wraps.
//
// Up to 32 bits through double: n / d is at least 2^-32 (relative) away from the next whole number
// unless it is one, so rounding to 53 bits cannot reach it. That way it vectorises.
template <class T>
SIMT_INLINE T divide(T a, T b) {
    const bool wraps = SIGNED<T> && b == static_cast<T>(-1);
    const T safe = b == 0 || wraps ? 1 : b;
    T quotient;
    if constexpr (sizeof(T) <= 4)
        quotient = static_cast<T>(static_cast<std::conditional_t<SIGNED<T>, s32, u32>>(
            static_cast<f64>(a) / static_cast<f64>(safe)));
    else
        quotient = a / safe;
    return b == 0 ? static_cast<T>(~0ull) : wraps ? wrap_neg<T>(a) : quotient;
}
template <class T>
SIMT_INLINE T modulo(T a, T b) {
    return b == 0 ? static_cast<T>(~0ull) : wrap_sub<T>(a, wrap_mul<T>(divide<T>(a, b), b));
}

// 24-bit products: the low or the high 32 of 48 bits.
template <class T>
SIMT_INLINE s64 mul24(T a, T b) {
    if constexpr (SIGNED<T>)
        return static_cast<s64>(static_cast<s32>(static_cast<u32>(a) << 8) >> 8) *
               (static_cast<s32>(static_cast<u32>(b) << 8) >> 8);
    else
        return static_cast<s64>(a & 0xFFFFFFu) * (b & 0xFFFFFFu);
}

// ---- shifts: amounts are clamped to the width
template <class T>
SIMT_INLINE T shift_left(T a, u32 by) {
    return static_cast<T>(by < WIDTH<T> ? static_cast<Work<T>>(a) << (by & (WIDTH<T> - 1)) : 0);
}
template <class T>
SIMT_INLINE T shift_right(T a, u32 by) {
    if constexpr (SIGNED<T>)
        return static_cast<T>(a >> (by < WIDTH<T> ? by : WIDTH<T> - 1));
    else
        return static_cast<T>(by < WIDTH<T> ? a >> (by & (WIDTH<T> - 1)) : 0);
}
SIMT_INLINE u32 clamp_amount(u32 by) { return by < 32 ? by : 32; }
SIMT_INLINE u32 wrap_amount(u32 by) { return by & 31; }
SIMT_INLINE u32 funnel_left(u32 low, u32 high, u32 by) {  // by at most 32
    return static_cast<u32>((static_cast<u64>(high) << 32 | low) << by >> 32);
}
SIMT_INLINE u32 funnel_right(u32 low, u32 high, u32 by) {
    return static_cast<u32>((static_cast<u64>(high) << 32 | low) >> by);
}

// ---- bits
template <class T>
SIMT_INLINE u32 count_ones(T a) {
    if constexpr (sizeof(T) == 8)
        return static_cast<u32>(__builtin_popcountll(a));
    else
        return static_cast<u32>(__builtin_popcount(a));
}
template <class T>
SIMT_INLINE u32 leading_zeros(T a) {
    if constexpr (sizeof(T) == 8)
        return a ? static_cast<u32>(__builtin_clzll(a)) : 64;
    else
        return a ? static_cast<u32>(__builtin_clz(a)) : 32;
}
template <class T>
SIMT_INLINE u32 highest_bit(T a) {  // bfind: of a negative number the highest zero; none: all ones
    const Work<T> bits = static_cast<Work<T>>(a < 0 ? ~a : a);
    return WIDTH<T> - 1 - leading_zeros<Work<T>>(bits);
}
template <class T>
SIMT_INLINE u32 highest_bit_shift(T a) {
    const u32 at = highest_bit<T>(a);
    return at == ~0u ? at : WIDTH<T> - 1 - at;
}
SIMT_INLINE u32 reversed(u32 a) {
    a = (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
    a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
    a = (a >> 4 & 0x0F0F0F0Fu) | (a & 0x0F0F0F0Fu) << 4;
    return __builtin_bswap32(a);
}
SIMT_INLINE u64 reversed(u64 a) {
    return static_cast<u64>(reversed(static_cast<u32>(a))) << 32 |
           reversed(static_cast<u32>(a >> 32));
}
template <class T>
SIMT_INLINE Work<T> low_ones(u32 count) {
    return count >= WIDTH<T> ? static_cast<Work<T>>(~0ull)
                             : (static_cast<Work<T>>(1) << (count & (WIDTH<T> - 1))) - 1;
}
// Places and lengths above 255 are left open by the ISA. An H100 takes the low 8 bits for 32-bit
// numbers and all of them for 64-bit ones.
template <class T>
SIMT_INLINE u32 field(u32 given) {
    return sizeof(T) == 8 ? given : given & 255;
}
template <class T>
SIMT_INLINE T extract_bits(T a, u32 from, u32 count) {  // bfe
    from = field<T>(from);
    count = field<T>(count);
    if constexpr (SIGNED<T>) {
        // Beyond the top bit, the top bit: what an arithmetic shift brings in.
        const T shifted = shift_right<T>(a, from);
        const u32 rest = count < WIDTH<T> ? WIDTH<T> - count : 0;
        const T cut = static_cast<T>(static_cast<Work<T>>(shifted) << (rest & (WIDTH<T> - 1)));
        return count == 0 ? 0 : static_cast<T>(cut >> (rest & (WIDTH<T> - 1)));
    } else {
        return shift_right<T>(a, from) & low_ones<T>(count);
    }
}
template <class T>
SIMT_INLINE T insert_bits(T a, T into, u32 at, u32 count) {  // bfi
    const u32 by = field<T>(at);
    const T mask = shift_left<T>(low_ones<T>(field<T>(count)), by);
    return (into & ~mask) | (shift_left<T>(a, by) & mask);
}
template <bool Clamp>
SIMT_INLINE u32 bit_mask(u32 from, u32 count) {  // bmsk
    const u32 start = from & 31, end = start + (count & 31);
    const u32 above = (Clamp && from >= 32) ? 0 : ~0u << start;
    const bool over = end >= 32 || (Clamp && (from >= 32 || count >= 32));
    return above & ~(over ? 0 : ~0u << (end & 31));
}
template <class T, bool Clamp>
SIMT_INLINE T extend_from(T a, u32 bits) {  // szext
    const u32 kept = bits & 31;
    const u32 mask = (Clamp && bits >= 32) ? 0 : ~0u << kept;
    const bool negative = SIGNED<T> && kept != 0 && (static_cast<u32>(a) >> ((kept - 1) & 31) & 1);
    return static_cast<T>((static_cast<u32>(a) & ~mask) | (negative ? mask : 0));
}
SIMT_INLINE u32 nth_set(u32 mask, u32 base, s32 offset) {  // fns
    if (offset == 0) return base < 32 && (mask >> base & 1) ? base : ~0u;
    const s64 step = offset > 0 ? 1 : -1;
    s64 left = offset > 0 ? s64(offset) : -s64(offset);
    for (s64 at = base; at >= 0 && at < 32; at += step)
        if ((mask >> at & 1) && --left == 0) return static_cast<u32>(at);
    return ~0u;
}
SIMT_INLINE u32 any_logic(u32 a, u32 b, u32 c, u32 table) {  // lop3: table as of 0xF0, 0xCC, 0xAA
    u32 result = 0;
    for (u32 row = 0; row < 8; row++)
        result |= (table >> row & 1 ? ~0u : 0) & (row & 4 ? a : ~a) & (row & 2 ? b : ~b) &
                  (row & 1 ? c : ~c);
    return result;
}

// ---- prmt: four bytes of b:a, chosen by a nibble each; its top bit gives copies of the sign
enum class Permute { plain, f4e, b4e, rc8, ecl, ecr, rc16 };
template <Permute P>
SIMT_INLINE u32 permute(u32 a, u32 b, u32 control) {
    const u64 bytes = static_cast<u64>(b) << 32 | a;
    const u32 k = control & 3;
    u32 result = 0;
    for (u32 i = 0; i < 4; i++) {
        const u32 from = P == Permute::plain ? control >> 4 * i & 7
                         : P == Permute::f4e ? k + i
                         : P == Permute::b4e ? (k - i) & 7
                         : P == Permute::rc8 ? k
                         : P == Permute::ecl ? (i > k ? i : k)
                         : P == Permute::ecr ? (i < k ? i : k)
                                             : (k & 1) * 2 + (i & 1);
        u32 byte = static_cast<u32>(bytes >> 8 * from) & 255;
        if (P == Permute::plain && (control >> 4 * i & 8)) byte = byte & 128 ? 255 : 0;
        result |= byte << 8 * i;
    }
    return result;
}

// ---- products of the bytes (and halves) of a word
template <class T>
SIMT_INLINE s32 byte_of(T word, u32 i) {
    const u32 byte = static_cast<u32>(word) >> 8 * i & 255;
    return SIGNED<T> ? static_cast<s32>(static_cast<s8>(byte)) : static_cast<s32>(byte);
}
template <class T>
SIMT_INLINE s32 half_of(T word, u32 i) {
    const u32 half = static_cast<u32>(word) >> 16 * i & 0xFFFF;
    return SIGNED<T> ? static_cast<s32>(static_cast<s16>(half)) : static_cast<s32>(half);
}
template <class A, class B>
SIMT_INLINE u32 dot_bytes(A a, B b, u32 c) {
    for (u32 i = 0; i < 4; i++) c += static_cast<u32>(byte_of<A>(a, i) * byte_of<B>(b, i));
    return c;
}
template <class A, class B>
SIMT_INLINE u32 dot_halves(A a, B b, u32 c, u32 from) {  // from: the first of two bytes of b
    for (u32 i = 0; i < 2; i++) c += static_cast<u32>(half_of<A>(a, i) * byte_of<B>(b, from + i));
    return c;
}

// ---- two 16-bit numbers in a word
template <class T, T (*F)(T, T)>
SIMT_INLINE u32 each_short(u32 a, u32 b) {
    const u32 low = static_cast<u16>(F(static_cast<T>(a), static_cast<T>(b)));
    const u32 high = static_cast<u16>(F(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return low | high << 16;
}
template <class T>
SIMT_INLINE T not_negative(T a) {
    return a < 0 ? 0 : a;
}
template <class T>
SIMT_INLINE T smaller_relu(T a, T b) {
    return not_negative<T>(smaller<T>(a, b));
}
template <class T>
SIMT_INLINE T larger_relu(T a, T b) {
    return not_negative<T>(larger<T>(a, b));
}

// ---- comparisons; all that end in u, and nan, are true of a NaN
enum class Test { eq, ne, lt, le, gt, ge, lo, ls, hi, hs, equ, neu, ltu, leu, gtu, geu, num, nan };
template <Test K, class T>
SIMT_INLINE u32 test(T a, T b) {
    switch (K) {
        case Test::eq: return a == b;
        case Test::ne: return (a < b) | (a > b);
        case Test::lt: case Test::lo: return a < b;
        case Test::le: case Test::ls: return a <= b;
        case Test::gt: case Test::hi: return a > b;
        case Test::ge: case Test::hs: return a >= b;
        case Test::equ: return !((a < b) | (a > b));
        case Test::neu: return a != b;
        case Test::ltu: return !(a >= b);
        case Test::leu: return !(a > b);
        case Test::gtu: return !(a <= b);
        case Test::geu: return !(a < b);
        case Test::num: return (a == a) & (b == b);
        case Test::nan: return (a != a) | (b != b);
    }
}

// ---- carries, for 64- and 128-bit sums made of parts
template <class T>
SIMT_INLINE u32 carry_of(T a, T b, u32 in) {
    using U = std::make_unsigned_t<T>;
    const U sum = static_cast<U>(a) + static_cast<U>(b);
    return (sum < static_cast<U>(a)) | (static_cast<U>(sum + in) < sum);
}
template <class T>
SIMT_INLINE u32 borrow_of(T a, T b, u32 in) {
    using U = std::make_unsigned_t<T>;
    const U rest = static_cast<U>(a) - static_cast<U>(b);
    return (static_cast<U>(a) < static_cast<U>(b)) | (rest < in);
}

// ---- cvt.pack
template <class T>
SIMT_INLINE u32 pack_shorts(s32 high, s32 low) {
    return static_cast<u32>(clamp_to<T, s32>(high)) << 16 |
           static_cast<u16>(clamp_to<T, s32>(low));
}
template <int Bits, bool Sign>
SIMT_INLINE u32 pack_small(s32 high, s32 low, u32 rest) {
    constexpr s32 least = Sign ? -(1 << (Bits - 1)) : 0;
    constexpr s32 most = (1 << (Sign ? Bits - 1 : Bits)) - 1;
    constexpr u32 mask = (1u << Bits) - 1;
    const u32 a = static_cast<u32>(high < least ? least : high > most ? most : high) & mask;
    const u32 b = static_cast<u32>(low < least ? least : low > most ? most : low) & mask;
    return rest << 2 * Bits | a << Bits | b;
}
