// mma.sync: the registers' layouts, which PTX fixes, and the instructions that exist.
//
// Of A, register r of lanes 4 g to 4 g + 3 holds 4 words in a row of one row of the matrix: row g,
// or g + 8 for odd r where M is 16, further along with every next such register. Of B likewise,
// with column g. Of C, lane 4 g + t holds columns 2 t and 2 t + 1 of row g, then of row g + 8.
// (PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" and the other shapes.)
#include "tensor_values.h"

namespace tensor {
namespace {

template <class T>
constexpr int PER_WORD = 8 * sizeof(typename T::Word) / T::BITS;

// Word t of each of the 8 groups of 4 lanes, for t = 0 .. 3: a matrix of 8 x 4 on its side.
SIMT_INLINE void turn(const u32* lanes, Bits8 (&to)[4]) {
    const auto a = fetch<Bits8>(lanes), b = fetch<Bits8>(lanes + 8);
    const auto c = fetch<Bits8>(lanes + 16), d = fetch<Bits8>(lanes + 24);
    const Bits8 low = {0, 4, 8, 12, 1, 5, 9, 13}, high = {2, 6, 10, 14, 3, 7, 11, 15};
    const Bits8 first = {0, 1, 2, 3, 8, 9, 10, 11}, second = {4, 5, 6, 7, 12, 13, 14, 15};
    const Bits8 ab = __builtin_shuffle(a, b, low), cd = __builtin_shuffle(c, d, low);
    to[0] = __builtin_shuffle(ab, cd, first);
    to[1] = __builtin_shuffle(ab, cd, second);
    const Bits8 ab2 = __builtin_shuffle(a, b, high), cd2 = __builtin_shuffle(c, d, high);
    to[2] = __builtin_shuffle(ab2, cd2, first);
    to[3] = __builtin_shuffle(ab2, cd2, second);
}

// The elements of 8 words: the first of each word, the second of each, ...
template <class T, int STRIDE>
SIMT_INLINE void split(Bits8 words, Number<T>* to) {
    if constexpr (T::BITS == 32) {
        keep(Value<T>::of(words), to);
    } else if constexpr (T::BITS == 16) {
        const auto low = __builtin_convertvector(words & 0xFFFF, Half8);
        const auto high = __builtin_convertvector(words >> 16, Half8);
        keep(Value<T>::of(low), to);
        keep(Value<T>::of(high), to + STRIDE);
    } else {
#pragma GCC unroll 8
        for (int h = 0; h < PER_WORD<T>; h++)
            keep(Value<T>::of(words >> (T::BITS * h) & ((1u << T::BITS) - 1)), to + STRIDE * h);
    }
}

template <class T, int K>
void gather_b(In<T> from, Number<T> (&to)[K][8]) {
    constexpr int E = PER_WORD<T>;
    for (int r = 0; r < K / (4 * E); r++)
        if constexpr (T::BITS == 64) {
            for (u32 l = 0; l < LANES; l++) to[4 * r + l % 4][l / 4] = bit_cast<f64>(from[r][l]);
        } else {
            Bits8 words[4];
            turn(from[r], words);
#pragma GCC unroll 4
            for (int t = 0; t < 4; t++) split<T, 8>(words[t], to[(4 * r + t) * E]);
        }
}

// The 4 words of a group are neighbours in a row of A.
template <class T>
SIMT_INLINE void neighbours(const typename T::Word* words, Number<T>* to) {
    if constexpr (T::BITS == 64) {
        memcpy(to, words, 4 * sizeof *words);
    } else if constexpr (T::BITS == 32) {
        for (int i = 0; i < 4; i++) to[i] = Value<T>::of(Bits8{} + words[i])[0];
    } else if constexpr (T::BITS == 16) {
        keep(Value<T>::of(fetch<Half8>(words)), to);
    } else if constexpr (T::BITS == 8) {
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++)
            keep(Value<T>::of(fetch_bytes(words + 2 * i)), to + 8 * i);
    } else {
        const Bits8 shifts = {0, 4, 8, 12, 16, 20, 24, 28};
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            keep(Value<T>::of((Bits8{} + words[i]) >> shifts & 15), to + 8 * i);
    }
}

template <class T, int M, int K>
void gather_a(In<T> from, Number<T> (&to)[M][K]) {
    constexpr int HALVES = M / 8, RUN = 4 * PER_WORD<T>;
    for (int r = 0; r < HALVES * K / RUN; r++)
#pragma GCC unroll 8
        for (int g = 0; g < 8; g++)
            neighbours<T>(from[r] + 4 * g, to[g + 8 * (r % HALVES)] + r / HALVES * RUN);
}

// Two registers' lanes, alternately, and back.
template <class V>
SIMT_INLINE void weave(V even, V odd, V& first, V& second) {
    first = __builtin_shuffle(even, odd, V{0, 8, 1, 9, 2, 10, 3, 11});
    second = __builtin_shuffle(even, odd, V{4, 12, 5, 13, 6, 14, 7, 15});
}
template <class V>
SIMT_INLINE void unweave(V first, V second, V& even, V& odd) {
    even = __builtin_shuffle(first, second, V{0, 2, 4, 6, 8, 10, 12, 14});
    odd = __builtin_shuffle(first, second, V{1, 3, 5, 7, 9, 11, 13, 15});
}

// C's bits, row by row.
template <class T, int M>
void gather_c(In<T> from, Items<T> (&to)[M]) {
    for (int h = 0; h < M / 8; h++)
        for (int g = 0; g < 8; g += 2) {
            auto* rows = to + 8 * h + g;
            if constexpr (T::BITS == 16) {  // a register holds both columns
                memcpy(rows, from[h] + 4 * g, 2 * sizeof *rows);
            } else {
                using V = Items<T>;
                weave(fetch<V>(from[2 * h] + 4 * g), fetch<V>(from[2 * h + 1] + 4 * g), rows[0],
                      rows[1]);
            }
        }
}

template <class T, int M>
void scatter(u32 mask, const Items<T> (&from)[M], Out<T> to) {
    for (u32 h = 0; h < M / 8; h++)
        for (u32 g = 0; g < 8; g += 2) {
            const auto* rows = from + 8 * h + g;
            if constexpr (T::BITS == 16) {
                put(mask, 4 * g, fetch<Bits8>(rows), to[h]);
            } else {
                Items<T> even, odd;
                unweave(rows[0], rows[1], even, odd);
                put(mask, 4 * g, even, to[2 * h]);
                put(mask, 4 * g, odd, to[2 * h + 1]);
            }
        }
}

}  // namespace

template <int M, int N, int K, class A, class B, class C>
void Mma<M, N, K, A, B, C>::run(Warp& W, u32 site, u32 mask, Out<C> d, In<A> a, In<B> b, In<C> c) {
    static_assert(N == 8, "every shape of mma has 8 columns");
    if (!together(W, site, mask)) return;
    alignas(64) Number<A> rows[M][K], columns[K][N], sums[M][N];
    alignas(64) Items<C> items[M];
    gather_a<A>(a, rows);
    gather_b<B>(b, columns);
    gather_c<C>(c, items);
    for (int i = 0; i < M; i++) keep(Sum<C>::start(items[i]), sums[i]);
    multiply<A::BITS != 64>(rows, columns, sums);
    for (int i = 0; i < M; i++)
        items[i] = Sum<C>::finish(sums[i], items[i]);
    scatter<C>(mask, items, d);
}

// What exists, as patterns in forms/tensor.py.
template struct Mma<16, 8, 8, F16, F16, F16>;
template struct Mma<16, 8, 16, F16, F16, F16>;
template struct Mma<16, 8, 8, F16, F16, F32>;
template struct Mma<16, 8, 16, F16, F16, F32>;
template struct Mma<16, 8, 8, BF16, BF16, F32>;
template struct Mma<16, 8, 16, BF16, BF16, F32>;
template struct Mma<16, 8, 4, TF32, TF32, F32>;
template struct Mma<16, 8, 8, TF32, TF32, F32>;
template struct Mma<8, 8, 4, F64, F64, F64>;
template struct Mma<16, 8, 4, F64, F64, F64>;
template struct Mma<16, 8, 8, F64, F64, F64>;
template struct Mma<16, 8, 16, F64, F64, F64>;
template struct Mma<16, 8, 16, E4M3, E4M3, F16>;
template struct Mma<16, 8, 16, E4M3, E4M3, F32>;
template struct Mma<16, 8, 16, E4M3, E5M2, F16>;
template struct Mma<16, 8, 16, E4M3, E5M2, F32>;
template struct Mma<16, 8, 16, E5M2, E4M3, F16>;
template struct Mma<16, 8, 16, E5M2, E4M3, F32>;
template struct Mma<16, 8, 16, E5M2, E5M2, F16>;
template struct Mma<16, 8, 16, E5M2, E5M2, F32>;
template struct Mma<16, 8, 32, E4M3, E4M3, F16>;
template struct Mma<16, 8, 32, E4M3, E4M3, F32>;
template struct Mma<16, 8, 32, E4M3, E5M2, F16>;
template struct Mma<16, 8, 32, E4M3, E5M2, F32>;
template struct Mma<16, 8, 32, E5M2, E4M3, F16>;
template struct Mma<16, 8, 32, E5M2, E4M3, F32>;
template struct Mma<16, 8, 32, E5M2, E5M2, F16>;
template struct Mma<16, 8, 32, E5M2, E5M2, F32>;
template struct Mma<8, 8, 16, S8, S8, S32>;
template struct Mma<8, 8, 16, S8, S8, CLAMPED>;
template struct Mma<8, 8, 16, S8, U8, S32>;
template struct Mma<8, 8, 16, S8, U8, CLAMPED>;
template struct Mma<8, 8, 16, U8, S8, S32>;
template struct Mma<8, 8, 16, U8, S8, CLAMPED>;
template struct Mma<8, 8, 16, U8, U8, S32>;
template struct Mma<8, 8, 16, U8, U8, CLAMPED>;
template struct Mma<16, 8, 16, S8, S8, S32>;
template struct Mma<16, 8, 16, S8, S8, CLAMPED>;
template struct Mma<16, 8, 16, S8, U8, S32>;
template struct Mma<16, 8, 16, S8, U8, CLAMPED>;
template struct Mma<16, 8, 16, U8, S8, S32>;
template struct Mma<16, 8, 16, U8, S8, CLAMPED>;
template struct Mma<16, 8, 16, U8, U8, S32>;
template struct Mma<16, 8, 16, U8, U8, CLAMPED>;
template struct Mma<16, 8, 32, S8, S8, S32>;
template struct Mma<16, 8, 32, S8, S8, CLAMPED>;
template struct Mma<16, 8, 32, S8, U8, S32>;
template struct Mma<16, 8, 32, S8, U8, CLAMPED>;
template struct Mma<16, 8, 32, U8, S8, S32>;
template struct Mma<16, 8, 32, U8, S8, CLAMPED>;
template struct Mma<16, 8, 32, U8, U8, S32>;
template struct Mma<16, 8, 32, U8, U8, CLAMPED>;
template struct Mma<8, 8, 32, S4, S4, S32>;
template struct Mma<8, 8, 32, S4, S4, CLAMPED>;
template struct Mma<8, 8, 32, S4, U4, S32>;
template struct Mma<8, 8, 32, S4, U4, CLAMPED>;
template struct Mma<8, 8, 32, U4, S4, S32>;
template struct Mma<8, 8, 32, U4, S4, CLAMPED>;
template struct Mma<8, 8, 32, U4, U4, S32>;
template struct Mma<8, 8, 32, U4, U4, CLAMPED>;
template struct Mma<16, 8, 32, S4, S4, S32>;
template struct Mma<16, 8, 32, S4, S4, CLAMPED>;
template struct Mma<16, 8, 32, S4, U4, S32>;
template struct Mma<16, 8, 32, S4, U4, CLAMPED>;
template struct Mma<16, 8, 32, U4, S4, S32>;
template struct Mma<16, 8, 32, U4, S4, CLAMPED>;
template struct Mma<16, 8, 32, U4, U4, S32>;
template struct Mma<16, 8, 32, U4, U4, CLAMPED>;
template struct Mma<16, 8, 64, S4, S4, S32>;
template struct Mma<16, 8, 64, S4, S4, CLAMPED>;
template struct Mma<16, 8, 64, S4, U4, S32>;
template struct Mma<16, 8, 64, S4, U4, CLAMPED>;
template struct Mma<16, 8, 64, U4, S4, S32>;
template struct Mma<16, 8, 64, U4, S4, CLAMPED>;
template struct Mma<16, 8, 64, U4, U4, S32>;
template struct Mma<16, 8, 64, U4, U4, CLAMPED>;

}  // namespace tensor
