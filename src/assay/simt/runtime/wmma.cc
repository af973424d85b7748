// wmma: fragments of matrices from and to memory, and their product.
#include <type_traits>

#include "memory.h"
#include "tensor_values.h"

namespace tensor {
namespace {

// As what an element is kept, and eight of them as numbers.
template <class T>
using Stored = std::conditional_t<
    T::BITS == 8, u8, std::conditional_t<T::BITS == 16, u16, typename T::Word>>;
template <class T>
SIMT_INLINE void unpack(const Stored<T>* items, Number<T>* to) {
    if constexpr (T::BITS == 8)
        keep(Value<T>::of(fetch_bytes(items)), to);
    else
        keep(Value<T>::of(fetch<Vector<Stored<T>, 8>>(items)), to);
}

// Elements a lane holds. PTX has 16 of f16 for A and B whatever the shape, so some are held twice.
template <class T>
constexpr int each_of(int total) {
    return std::is_same<T, F16>::value ? 16 : total / static_cast<int>(LANES);
}

// The elements in their order, from the lanes that hold them first.
template <class Word, class Element, int TOTAL>
void collect(const Word* const* from, Element (&to)[TOTAL], int each) {
    const int words = each * static_cast<int>(sizeof(Element)) / static_cast<int>(sizeof(Word));
    Word* out = reinterpret_cast<Word*>(to);
    for (int l = 0; l < TOTAL / each; l++)
        for (int w = 0; w < words; w++) memcpy(out++, &from[w][l], sizeof(Word));
}

template <class T, int HEIGHT, int WIDTH>
void gather(In<T> from, bool by_row, Number<T> (&to)[HEIGHT][WIDTH]) {
    using Element = Stored<T>;
    constexpr int TOTAL = HEIGHT * WIDTH;
    alignas(64) Element items[TOTAL];
    alignas(64) Number<T> numbers[TOTAL];
    collect(from, items, each_of<T>(TOTAL));
    for (int i = 0; i < TOTAL; i += 8) unpack<T>(items + i, numbers + i);
    for (int i = 0; i < HEIGHT; i++)
        for (int j = 0; j < WIDTH; j++)
            to[i][j] = numbers[by_row ? i * WIDTH + j : j * HEIGHT + i];
}

template <int BYTES>
void read(Warp& W, u32 site, u32 mask, Space space, const u64* address, u8* pack) {
    if (space == GLOBAL) return load_global<BYTES>(W, mask, address, site, pack);
    if (space == GENERIC) return load_generic<BYTES>(W, mask, address, site, pack);
    u32 offset[LANES];
    for (u32 l = 0; l < LANES; l++) offset[l] = static_cast<u32>(address[l]);
    load_shared<BYTES>(W, mask, offset, site, pack);
}

template <int BYTES>
void write(Warp& W, u32 site, u32 mask, Space space, const u64* address, const u8* pack) {
    if (space == GLOBAL) return store_global<BYTES>(W, mask, address, site, pack);
    if (space == GENERIC) return store_generic<BYTES>(W, mask, address, site, pack);
    u32 offset[LANES];
    for (u32 l = 0; l < LANES; l++) offset[l] = static_cast<u32>(address[l]);
    store_shared<BYTES>(W, mask, offset, site, pack);
}

using Access = void (*)(Warp&, u32, u32, Space, const u64*, u8*);
using ConstAccess = void (*)(Warp&, u32, u32, Space, const u64*, const u8*);
constexpr Access READ[] = {read<1>, read<2>, read<4>, read<8>, read<16>};
constexpr ConstAccess WRITE[] = {write<1>, write<2>, write<4>, write<8>, write<16>};

// Bytes of one access: a lane's neighbours in memory, at most 16. (What PTX asks of alignment, and
// more than C++ does, is that of a lane's whole share: 32 bytes for f16.)
u32 bytes_at_once(const Share& share) {
    const u32 neighbours = !share.straight            ? 1
                           : share.each < share.along ? share.each
                                                      : share.along;
    return neighbours * share.size > 16 ? 16 : neighbours * share.size;
}

// Where each lane's share goes on in memory, from its element `begin`.
template <class Address>
void addresses(const Share& share, const Address* base, s64 offset, const u32* stride, u32 begin,
               u64* to) {
    for (u32 l = 0; l < LANES; l++) {
        const u32 at = (l * share.each + begin) % share.total;
        const u64 line = at / share.along, along = at % share.along;
        const u64 element = share.straight ? line * stride[l] + along : along * stride[l] + line;
        to[l] = base[l] + static_cast<u64>(offset) + element * share.size;
    }
}

// The most that a lane holds: 16 f16, 8 f32.
constexpr u32 MOST = 32;

u32 word_of(const Share& share) { return share.size == 8 ? 8 : 4; }

}  // namespace

template <class Address>
void load(Warp& W, u32 site, u32 mask, Space space, const Share& share, const Address* address,
          s64 offset, const u32* stride, void* const* d) {
    if (!together(W, site, mask)) return;
    const u32 bytes = bytes_at_once(share), held = share.each * share.size, word = word_of(share);
    alignas(64) u8 lanes[LANES][MOST], pack[LANES * 16];
    alignas(64) u64 at[LANES];
    for (u32 begin = 0; begin < held; begin += bytes) {
        addresses(share, address, offset, stride, begin / share.size, at);
        memset(pack, 0, sizeof pack);  // where reading is a fault
        READ[__builtin_ctz(bytes)](W, site, mask, space, at, pack);
        for (u32 l = 0; l < LANES; l++) memcpy(lanes[l] + begin, pack + l * bytes, bytes);
    }
    for (u32 w = 0; w < held / word; w++)
        for (u32 l = 0; l < LANES; l++)
            if (mask >> l & 1) memcpy(static_cast<u8*>(d[w]) + l * word, lanes[l] + w * word, word);
}

template <class Address>
void store(Warp& W, u32 site, u32 mask, Space space, const Share& share, const Address* address,
           s64 offset, const u32* stride, const void* const* d) {
    if (!together(W, site, mask)) return;
    const u32 bytes = bytes_at_once(share), held = share.each * share.size, word = word_of(share);
    alignas(64) u8 lanes[LANES][MOST], pack[LANES * 16];
    alignas(64) u64 at[LANES];
    for (u32 w = 0; w < held / word; w++)
        for (u32 l = 0; l < LANES; l++)
            memcpy(lanes[l] + w * word, static_cast<const u8*>(d[w]) + l * word, word);
    for (u32 begin = 0; begin < held; begin += bytes) {
        addresses(share, address, offset, stride, begin / share.size, at);
        for (u32 l = 0; l < LANES; l++) memcpy(pack + l * bytes, lanes[l] + begin, bytes);
        WRITE[__builtin_ctz(bytes)](W, site, mask, space, at, pack);
    }
}

template <int M, int N, int K, class A, class B, class C, class D>
void Wmma<M, N, K, A, B, C, D>::run(Warp& W, u32 site, u32 mask, bool row_a, bool row_b, Out<D> d,
                                    In<A> a, In<B> b, In<C> c) {
    constexpr int TOTAL = M * N, EACH = TOTAL / static_cast<int>(LANES);
    if (!together(W, site, mask)) return;
    alignas(64) Number<A> rows[M][K], columns[K][N], sums[M][N];
    alignas(64) Item<C> old[TOTAL];
    alignas(64) Item<D> made[TOTAL];
    gather<A>(a, row_a, rows);
    gather<B>(b, row_b, columns);
    collect(c, old, EACH);
    Number<A>* const sum = sums[0];
    for (int i = 0; i < TOTAL; i += 8) keep(Sum<C>::start(fetch<Items<C>>(old + i)), sum + i);
    multiply<A::BITS != 64>(rows, columns, sums);
    for (int i = 0; i < TOTAL; i += 8) {
        auto before = Items<D>{};  // only integers look at it
        if constexpr (std::is_same<C, D>::value) before = fetch<Items<D>>(old + i);
        const auto done = Sum<D>::finish(sum + i, before);
        memcpy(made + i, &done, sizeof done);
    }
    using Word = typename D::Word;
    constexpr int WORDS = EACH * sizeof(Item<D>) / sizeof(Word);
    for (int w = 0; w < WORDS; w++)
        for (u32 l = 0; l < LANES; l++)
            if (mask >> l & 1)
                memcpy(&d[w][l], reinterpret_cast<const Word*>(made) + l * WORDS + w, sizeof(Word));
}

template void load(Warp&, u32, u32, Space, const Share&, const u32*, s64, const u32*, void* const*);
template void store(Warp&, u32, u32, Space, const Share&, const u32*, s64, const u32*,
                    const void* const*);
template void load(Warp&, u32, u32, Space, const Share&, const u64*, s64, const u32*, void* const*);
template void store(Warp&, u32, u32, Space, const Share&, const u64*, s64, const u32*,
                    const void* const*);

// What exists, as patterns in forms/tensor.py.
template struct Wmma<16, 16, 16, F16, F16, F16, F16>;
template struct Wmma<16, 16, 16, F16, F16, F16, F32>;
template struct Wmma<16, 16, 16, F16, F16, F32, F16>;
template struct Wmma<16, 16, 16, F16, F16, F32, F32>;
template struct Wmma<32, 8, 16, F16, F16, F16, F16>;
template struct Wmma<32, 8, 16, F16, F16, F16, F32>;
template struct Wmma<32, 8, 16, F16, F16, F32, F16>;
template struct Wmma<32, 8, 16, F16, F16, F32, F32>;
template struct Wmma<8, 32, 16, F16, F16, F16, F16>;
template struct Wmma<8, 32, 16, F16, F16, F16, F32>;
template struct Wmma<8, 32, 16, F16, F16, F32, F16>;
template struct Wmma<8, 32, 16, F16, F16, F32, F32>;
template struct Wmma<16, 16, 16, BF16, BF16, F32, F32>;
template struct Wmma<32, 8, 16, BF16, BF16, F32, F32>;
template struct Wmma<8, 32, 16, BF16, BF16, F32, F32>;
template struct Wmma<16, 16, 8, TF32, TF32, F32, F32>;
template struct Wmma<8, 8, 4, F64, F64, F64, F64>;
template struct Wmma<16, 16, 16, S8, S8, S32, S32>;
template struct Wmma<16, 16, 16, S8, S8, CLAMPED, CLAMPED>;
template struct Wmma<16, 16, 16, U8, U8, S32, S32>;
template struct Wmma<16, 16, 16, U8, U8, CLAMPED, CLAMPED>;
template struct Wmma<32, 8, 16, S8, S8, S32, S32>;
template struct Wmma<32, 8, 16, S8, S8, CLAMPED, CLAMPED>;
template struct Wmma<32, 8, 16, U8, U8, S32, S32>;
template struct Wmma<32, 8, 16, U8, U8, CLAMPED, CLAMPED>;
template struct Wmma<8, 32, 16, S8, S8, S32, S32>;
template struct Wmma<8, 32, 16, S8, S8, CLAMPED, CLAMPED>;
template struct Wmma<8, 32, 16, U8, U8, S32, S32>;
template struct Wmma<8, 32, 16, U8, U8, CLAMPED, CLAMPED>;

}  // namespace tensor
