// Tensor-core instructions: mma.sync and wmma, on the registers of all 32 lanes of a warp.
//
// Arithmetic. Products are exact. Integers: sums are exact, then wrap to 32 bits or, with
// .satfinite, are clamped once. f64: fused multiply-adds in the order of k, from c on. The other
// types: c and the products are summed in f64 in the order of k (an error of at most K + 1 half
// ulps of f64, nothing beside what follows) and rounded once, toward zero to f32 and to nearest
// even to f16. NaN comes out as 0x7FFFFFFF or 0x7FFF. tf32 operands lose their low 13 bits.
//
// A tensor core aligns the products of a block of 4 to 16 k to the largest of them and cuts off
// what is below its last bit, block after block (Fasi et al., "Numerical behavior of NVIDIA tensor
// cores", 2021; Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores",
// 2022; Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores", 2025). With u = 2^-23 and
// S = |c| + sum |a b| the two differ by at most
//     blocks * ((size + 1) * 2^-extra + 1) * u S + u S.
// Published for f16 are a size of 8 and 1 extra bit on sm_80, 16 and 2 on sm_90: 12 u S and
// 6.25 u S for m16n8k16. `distance` in forms/tensor.py is what comparisons allow.
#pragma once

#include "warp.h"

namespace tensor {

// Types of elements: bits of an element and the register that holds it.
template <int BITS_, class Word_ = u32>
struct Packed {
    static constexpr int BITS = BITS_;
    using Word = Word_;
};
struct F16 : Packed<16> {};
struct BF16 : Packed<16> {};
struct TF32 : Packed<32> {};
struct F32 : Packed<32> {};
struct F64 : Packed<64, u64> {};
struct E4M3 : Packed<8> {};
struct E5M2 : Packed<8> {};
struct S8 : Packed<8> {};
struct U8 : Packed<8> {};
struct S4 : Packed<4> {};
struct U4 : Packed<4> {};
struct S32 : Packed<32> {};
struct CLAMPED : Packed<32> {};  // s32 with .satfinite

template <class T>
using In = const typename T::Word* const*;  // for each register its 32 lanes
template <class T>
using Out = typename T::Word* const*;

// mma.sync.aligned.m{M}n{N}k{K}.row.col: d = a b + c. A is M x K, B is K x N, C and D are M x N.
// Accumulators C and D are of one type. Lanes outside the mask are a fault and not written.
template <int M, int N, int K, class A, class B, class C>
struct Mma {
    static void run(Warp& W, u32 site, u32 mask, Out<C> d, In<A> a, In<B> b, In<C> c);
};

// wmma. PTX leaves open which lane holds which element. Here lane l holds elements l * each to
// l * each + each - 1 of the matrix, in the order of its layout in memory (rows first for
// accumulators), starting again at the first when all have been given out; `each` is what the
// vector of registers that PTX prescribes has room for.

// D may be of another type than C: f16 and f32. row_a, row_b: layout .row or .col.
template <int M, int N, int K, class A, class B, class C, class D>
struct Wmma {
    static void run(Warp& W, u32 site, u32 mask, bool row_a, bool row_b, Out<D> d, In<A> a,
                    In<B> b, In<C> c);
};

enum Space : u32 { GLOBAL, SHARED, GENERIC };

// How lanes share a matrix: elements in all, in a line of the order that they follow, for each
// lane; bytes of an element; whether memory has that order, or lines and columns exchanged.
struct Share {
    u32 total, along, each, size;
    bool straight;
};

// The first element is at address[lane] + offset in the space (shared: from the block's first
// byte); stride: elements from line to line in memory. d: registers of 4 bytes (of 8 for f64),
// which hold a lane's `each` elements one after another. Address: u32 or u64.
template <class Address>
void load(Warp& W, u32 site, u32 mask, Space space, const Share& share, const Address* address,
          s64 offset, const u32* stride, void* const* d);
template <class Address>
void store(Warp& W, u32 site, u32 mask, Space space, const Share& share, const Address* address,
           s64 offset, const u32* stride, const void* const* d);

}  // namespace tensor
