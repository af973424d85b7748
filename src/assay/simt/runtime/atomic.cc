// Atomic operations, lane after lane.
#include "access.h"
#include "half.h"

u8* atomic_global(Warp& W, u32 lane, u64 address, u32 bytes, u32 site);
u8* atomic_shared(Warp& W, u32 lane, u32 address, u32 bytes, u32 site);
void count_atomic(Warp& W, u32 mask, const u64* address, u32 site, u32 bytes);
void count_shared_atomic(Warp& W, u32 mask, const u32* address, u32 site, u32 bytes);

namespace {

template <class T>
T apply(u32 operation, T a, T b, T c) {
    switch (operation) {
        case ATOM_ADD: return static_cast<T>(a + b);
        case ATOM_MIN: return b < a ? b : a;
        case ATOM_MAX: return b > a ? b : a;
        case ATOM_EXCH: return b;
        case ATOM_CAS: return a == b ? c : a;
        case ATOM_INC: return a >= b ? T{0} : static_cast<T>(a + 1);
        case ATOM_DEC: return a == 0 || a > b ? b : static_cast<T>(a - 1);
    }
    return a;
}

template <class T>
T apply_bits(u32 operation, T a, T b, T c) {
    switch (operation) {
        case ATOM_AND: return a & b;
        case ATOM_OR: return a | b;
        case ATOM_XOR: return a ^ b;
    }
    return apply(operation, a, b, c);
}

template <class T>
T at(const void* pack, u32 lane) {
    T value{};
    if (pack) memcpy(&value, static_cast<const u8*>(pack) + lane * sizeof(T), sizeof(T));
    return value;
}

bool is_shared(u64 address) { return address >> 32 == SHARED_WINDOW << (WINDOW_SHIFT - 32); }

// atom.add.f32 on global memory takes and leaves no subnormals (PTX ISA, atom); on shared it does.
f32 flush(f32 x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x; }

// Lanes that name the address that most of them name: they go one after the other.
u32 contention(u32 mask, const u64* address) {
    u32 most = 0;
    for (u32 left = mask; left;) {
        const u64 lead = address[first_lane(left)];
        u32 same = 0;
        each_lane(left, [&](u32 l) { same |= static_cast<u32>(address[l] == lead) << l; });
        most = lanes_in(same) > most ? lanes_in(same) : most;
        left &= ~same;
    }
    return most;
}

template <class T, class F>
void each(Warp& W, u32 mask, const u64* address, u32 site, void* old, const void* b,
          const void* c, F&& f) {
    each_lane(mask, [&](u32 l) {
        u8* here = is_shared(address[l])
                       ? atomic_shared(W, l, static_cast<u32>(address[l]), sizeof(T), site)
                       : atomic_global(W, l, address[l], sizeof(T), site);
        if (!here) return;
        T was;
        memcpy(&was, here, sizeof(T));
        const T now = f(was, at<T>(b, l), at<T>(c, l));
        W.worker->progress += memcmp(&was, &now, sizeof(T)) != 0;
        memcpy(here, &now, sizeof(T));
        if (old) memcpy(static_cast<u8*>(old) + l * sizeof(T), &was, sizeof(T));
    });
}

void count(Warp& W, u32 mask, const u64* address, u32 site, u32 bytes) {
    u32 shared = 0;
    u32 low[LANES];
    each_lane(mask, [&](u32 l) {
        shared |= static_cast<u32>(is_shared(address[l])) << l;
        low[l] = static_cast<u32>(address[l]);
    });
    if (shared) count_shared_atomic(W, shared, low, site, bytes);
    if (mask & ~shared) count_atomic(W, mask & ~shared, address, site, bytes);
    W.worker->site[site].contended += contention(mask, address);
}

constexpr u32 SIZE[] = {4, 4, 8, 8, 4, 8, 2, 2, 4, 4, 2};

}  // namespace

void atomic(Warp& W, u32 mask, const u64* address, u32 site, u32 operation, u32 type, u32 order,
            void* old, const void* b, const void* c) {
    if (!mask) return;
    if (W.launch->counts) count(W, mask, address, site, SIZE[type]);
    if (order & 2) fence(W, 1);
    W.touched = W.clock;
    const auto run = [&](auto zero, auto&& f) {
        each<decltype(zero)>(W, mask, address, site, old, b, c, f);
    };
    switch (type) {
        case TYPE_U16: run(u16{}, [&](u16 x, u16 y, u16 z) { return apply_bits(operation, x, y, z); }); break;
        case TYPE_U32: run(u32{}, [&](u32 x, u32 y, u32 z) { return apply_bits(operation, x, y, z); }); break;
        case TYPE_S32: run(s32{}, [&](s32 x, s32 y, s32 z) { return apply_bits(operation, x, y, z); }); break;
        case TYPE_U64: run(u64{}, [&](u64 x, u64 y, u64 z) { return apply_bits(operation, x, y, z); }); break;
        case TYPE_S64: run(s64{}, [&](s64 x, s64 y, s64 z) { return apply_bits(operation, x, y, z); }); break;
        case TYPE_F32: {
            u32 shared = 0;
            each_lane(mask, [&](u32 l) { shared |= static_cast<u32>(is_shared(address[l])) << l; });
            each<f32>(W, shared, address, site, old, b, c, [](f32 x, f32 y, f32) { return x + y; });
            each<f32>(W, mask & ~shared, address, site, old, b, c,
                      [](f32 x, f32 y, f32) { return flush(flush(x) + flush(y)); });
            break;
        }
        case TYPE_F64: run(f64{}, [&](f64 x, f64 y, f64 z) { return apply(operation, x, y, z); }); break;
        case TYPE_F16: run(u16{}, [](u16 x, u16 y, u16) { return f16_add(x, y); }); break;
        case TYPE_BF16: run(u16{}, [](u16 x, u16 y, u16) { return bf16_add(x, y); }); break;
        case TYPE_F16X2: run(u32{}, [](u32 x, u32 y, u32) {
            return f16_add(static_cast<u16>(x), static_cast<u16>(y)) |
                   static_cast<u32>(f16_add(static_cast<u16>(x >> 16), static_cast<u16>(y >> 16))) << 16;
        }); break;
        case TYPE_BF16X2: run(u32{}, [](u32 x, u32 y, u32) {
            return bf16_add(static_cast<u16>(x), static_cast<u16>(y)) |
                   static_cast<u32>(bf16_add(static_cast<u16>(x >> 16), static_cast<u16>(y >> 16))) << 16;
        }); break;
    }
    if (order & 1) acquire_seen(W);
}
