// cp.async: a copy lands when its lane waits for its group, not before, so that a missing wait
// reads bytes that are in flight.
#include "access.h"

const u8* source_of_copy(Warp& W, u32 lane, u64 address, u32 bytes, u32 size, u32 site);
void count_copy(Warp& W, u32 mask, const u64* address, u32 site, u32 bytes);
bool begin_copy(Warp& W, u32 lane, u32 address, u32 bytes, u32 site);
void land_copy(Warp& W, const AsyncCopy& copy);

void copy_async(Warp& W, u32 mask, const u32* to, const u64* from, u32 site, u32 bytes,
                const u32* source_bytes) {
    u32 reading = 0;
    each_lane(mask, [&](u32 l) { reading |= static_cast<u32>(source_bytes[l] != 0) << l; });
    if (W.launch->counts && reading) count_copy(W, reading, from, site, bytes);
    each_lane(mask, [&](u32 l) {
        const u32 wanted = source_bytes[l] < bytes ? source_bytes[l] : bytes;
        const u8* host = wanted ? source_of_copy(W, l, from[l], wanted, bytes, site) : nullptr;
        if (wanted && !host) return;
        if (begin_copy(W, l, to[l], bytes, site))
            W.copies.push({from[l], host, to[l], bytes, wanted, site, l, W.copies_committed[l]});
    });
}

void commit_async(Warp& W, u32 mask) {
    each_lane(mask, [&](u32 l) { W.copies_committed[l]++; });
}

void wait_async(Warp& W, u32 mask, u32 left) {
    u32 kept = 0;
    for (u32 i = 0; i < W.copies.count; i++) {
        const AsyncCopy& copy = W.copies.items[i];
        const bool lands = (mask >> copy.lane & 1) && copy.group + left < W.copies_committed[copy.lane];
        if (lands)
            land_copy(W, copy);
        else
            W.copies.items[kept++] = copy;
    }
    W.copies.count = kept;
}

void wait_async_all(Warp& W, u32 mask) {
    commit_async(W, mask);
    wait_async(W, mask, 0);
}
