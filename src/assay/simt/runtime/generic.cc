// Generic addresses, and the memory that only one thread sees: local memory and parameters.
#include "access.h"

const u8* bytes_from(const Launch& launch, u64 address, u64& count);

namespace {

u32 in_space(u32 mask, const u64* address, u64 window) {
    u32 found = 0;
    // A space of its own has 32 bits of addresses: what lies beyond is in none.
    each_lane(mask, [&](u32 l) {
        found |= static_cast<u32>(address[l] >> 32 == window << (WINDOW_SHIFT - 32)) << l;
    });
    return found;
}

void low_half(u32 mask, const u64* address, u32* low) {
    each_lane(mask, [&](u32 l) { low[l] = static_cast<u32>(address[l]); });
}

u8* local_of(const Warp& W, u32 lane) { return W.local + lane * W.launch->local_bytes; }

bool local_fault(Warp& W, u32 lane, u32 address, u32 bytes, u32 site) {
    const u64 room = W.launch->local_bytes;
    if (room >= bytes && address <= room - bytes) return false;
    fault(W, PRIVATE_BOUNDS, site, lane, (LOCAL_WINDOW << WINDOW_SHIFT) + address, bytes);
    return true;
}

}  // namespace

template <int N>
void load_local(Warp& W, u32 mask, const u32* address, u32 site, void* pack) {
    each_lane(mask, [&](u32 l) {
        if (local_fault(W, l, address[l], N, site))
            memset(static_cast<u8*>(pack) + l * N, 0, N);
        else
            memcpy(static_cast<u8*>(pack) + l * N, local_of(W, l) + address[l], N);
    });
}

template <int N>
void store_local(Warp& W, u32 mask, const u32* address, u32 site, const void* pack) {
    W.worker->progress++;
    each_lane(mask, [&](u32 l) {
        if (!local_fault(W, l, address[l], N, site))
            memcpy(local_of(W, l) + address[l], static_cast<const u8*>(pack) + l * N, N);
    });
}

template <int N>
void load_parameter(Warp& W, u32 mask, const u64* address, u32 site, void* pack) {
    const u64 room = W.launch->parameter_bytes;
    each_lane(mask, [&](u32 l) {
        const u64 at = address[l] & OFFSET_MASK;
        if (room < N || at > room - N) {
            fault(W, PRIVATE_BOUNDS, site, l, address[l], N);
            memset(static_cast<u8*>(pack) + l * N, 0, N);
        } else
            memcpy(static_cast<u8*>(pack) + l * N, W.launch->parameters + at, N);
    });
}

namespace {

// Each lane to the space that its address is in. Local memory and parameters are one thread's
// own, so that an access to them can't be strong.
template <int N, bool STRONG>
void load_any(Warp& W, u32 mask, const u64* address, u32 site, void* pack) {
    const u32 shared = in_space(mask, address, SHARED_WINDOW);
    const u32 local = in_space(mask, address, LOCAL_WINDOW);
    const u32 parameter = in_space(mask, address, PARAMETER_WINDOW);
    const u32 global = mask & ~(shared | local | parameter);
    u32 low[LANES];
    low_half(shared | local, address, low);
    if (shared) (STRONG ? load_shared_strong<N> : load_shared<N>)(W, shared, low, site, pack);
    if (local) load_local<N>(W, local, low, site, pack);
    if (parameter) load_parameter<N>(W, parameter, address, site, pack);
    (STRONG ? load_global_strong<N> : load_global<N>)(W, global, address, site, pack);
}

template <int N, bool STRONG>
void store_any(Warp& W, u32 mask, const u64* address, u32 site, const void* pack) {
    const u32 shared = in_space(mask, address, SHARED_WINDOW);
    const u32 local = in_space(mask, address, LOCAL_WINDOW);
    const u32 global = mask & ~(shared | local);
    u32 low[LANES];
    low_half(shared | local, address, low);
    if (shared) (STRONG ? store_shared_strong<N> : store_shared<N>)(W, shared, low, site, pack);
    if (local) store_local<N>(W, local, low, site, pack);
    (STRONG ? store_global_strong<N> : store_global<N>)(W, global, address, site, pack);
}

}  // namespace

template <int N>
void load_generic(Warp& W, u32 mask, const u64* address, u32 site, void* pack) {
    load_any<N, false>(W, mask, address, site, pack);
}

template <int N>
void store_generic(Warp& W, u32 mask, const u64* address, u32 site, const void* pack) {
    store_any<N, false>(W, mask, address, site, pack);
}

template <int N>
void load_generic_strong(Warp& W, u32 mask, const u64* address, u32 site, void* pack) {
    load_any<N, true>(W, mask, address, site, pack);
}

template <int N>
void store_generic_strong(Warp& W, u32 mask, const u64* address, u32 site, const void* pack) {
    store_any<N, true>(W, mask, address, site, pack);
}

namespace {

template <int N>
void read_one(Warp& W, u32 site, u32 lane, u64 address, void* to) {
    u64 all[LANES];
    u8 pack[LANES * N];
    all[lane] = address;
    memset(pack + lane * N, 0, N);
    load_generic<N>(W, 1u << lane, all, site, pack);
    memcpy(to, pack + lane * N, N);
}

template <int N>
void write_one(Warp& W, u32 site, u32 lane, u64 address, const void* from) {
    u64 all[LANES];
    u8 pack[LANES * N];
    all[lane] = address;
    memcpy(pack + lane * N, from, N);
    store_generic<N>(W, 1u << lane, all, site, pack);
}

}  // namespace

void read_generic(Warp& W, u32 site, u32 lane, u64 address, u32 bytes, void* to) {
    switch (bytes) {
        case 1: return read_one<1>(W, site, lane, address, to);
        case 2: return read_one<2>(W, site, lane, address, to);
        case 4: return read_one<4>(W, site, lane, address, to);
        case 8: return read_one<8>(W, site, lane, address, to);
        default: return read_one<16>(W, site, lane, address, to);
    }
}

void write_generic(Warp& W, u32 site, u32 lane, u64 address, u32 bytes, const void* from) {
    switch (bytes) {
        case 1: return write_one<1>(W, site, lane, address, from);
        case 2: return write_one<2>(W, site, lane, address, from);
        case 4: return write_one<4>(W, site, lane, address, from);
        case 8: return write_one<8>(W, site, lane, address, from);
        default: return write_one<16>(W, site, lane, address, from);
    }
}

// The text at a generic address, up to its end or that of its memory. False where there is none.
bool read_text(Warp& W, u32 lane, u64 address, char* to, u64 room) {
    const u64 offset = address & OFFSET_MASK, shared = W.block->shared_bytes;
    u64 count = 0;
    const u8* from = nullptr;
    if (in_window(address, LOCAL_WINDOW)) {
        const u64 local = W.launch->local_bytes;
        if (offset < local) from = local_of(W, lane) + offset, count = local - offset;
    } else if (in_window(address, SHARED_WINDOW)) {
        if (offset < shared) from = W.block->shared + offset, count = shared - offset;
    } else {
        from = bytes_from(*W.launch, address, count);
    }
    if (!from) return false;
    u64 used = 0;
    while (used < count && used + 1 < room && from[used]) used++;
    memcpy(to, from, used);
    to[used] = 0;
    return true;
}

#define SIMT_EACH(N)                                                                       \
    template void load_local<N>(Warp&, u32, const u32*, u32, void*);                       \
    template void store_local<N>(Warp&, u32, const u32*, u32, const void*);                \
    template void load_parameter<N>(Warp&, u32, const u64*, u32, void*);                   \
    template void load_generic<N>(Warp&, u32, const u64*, u32, void*);                     \
    template void store_generic<N>(Warp&, u32, const u64*, u32, const void*);              \
    template void load_generic_strong<N>(Warp&, u32, const u64*, u32, void*);              \
    template void store_generic_strong<N>(Warp&, u32, const u64*, u32, const void*);
SIMT_EACH(1) SIMT_EACH(2) SIMT_EACH(4) SIMT_EACH(8) SIMT_EACH(16)
#undef SIMT_EACH
