// mbarrier objects: 64 bits of shared memory, opaque to PTX, so their layout is ours.
//
// Low half: phase (16 bits) and pending arrivals (16); high half: expected arrivals (16), bits of
// bytes that transactions still owe are not kept, as nothing before Hopper has them. Arriving
// releases, a test that succeeds acquires.
#include <mutex>

#include "access.h"
#include "sync.h"

namespace {

struct Barrier {
    u16 phase, pending, expected, valid;
};
constexpr u16 VALID = 0x5AB1;

// The object itself, or null where it is out of bounds or was never made.
Barrier* object(Warp& W, u32 lane, u32 address, u32 site, bool made) {
    Block& block = *W.block;
    if (block.shared_bytes < 8 || address > block.shared_bytes - 8 || address & 7) {
        fault(W, OUT_OF_BOUNDS, site, lane, shared_to_generic(W, address), 8);
        return nullptr;
    }
    auto* found = reinterpret_cast<Barrier*>(block.shared + address);
    if (made && found->valid != VALID) {
        fault(W, NOT_WRITTEN, site, lane, shared_to_generic(W, address), 8);
        return nullptr;
    }
    return found;
}

// What orders those who arrive before those who see the phase complete: the object's own words
// of shadow hold the latest arrival of each; every arrival is known to whoever then passes.
void arrived(Warp& W, u32 lane, u32 address, u32 site) {
    const u32 shift = W.launch->shared_granule_shift;
    W.touched = W.clock;
    for (u32 k = 0; k < 8u >> shift; k++)
        SharedShadow{W.block->traces, site}.write(
            (address >> shift) + k, entry_of(site, W.clock, W.index * LANES + lane) | FLAG);
    next_clock(W);
}

void passed(Warp& W) {
    // All that any warp of the block did up to now: a phase completes only when all have arrived
    // that it counts, and those it does not count it does not order. This may miss a race.
    for (u32 w = 0; w < W.block->warps; w++)
        if (w != W.index)
            acquire_warp(W, entry_of(0, W.block->warp[w].clock - 1, w * LANES));
    next_clock(W);
}

void arrive_one(Warp& W, u32 lane, Barrier& barrier, u32 count, u32 address, u32 site) {
    if (count > barrier.pending) {
        fault(W, BAD_BARRIER, site, lane, address, barrier.pending);
        return;
    }
    barrier.pending = static_cast<u16>(barrier.pending - count);
    W.worker->progress++;
    if (!barrier.pending) {
        barrier.phase++;
        barrier.pending = barrier.expected;
    }
    arrived(W, lane, address, site);
}

}  // namespace

void mbarrier_init(Warp& W, u32 mask, const u32* address, const u32* count, u32 site) {
    each_lane(mask, [&](u32 l) {
        Barrier* barrier = object(W, l, address[l], site, false);
        if (!barrier) return;
        const auto expected = static_cast<u16>(count[l]);
        write_row(W, site, l, address[l], 8, barrier);
        *barrier = {0, expected, expected, VALID};
    });
}

void mbarrier_inval(Warp& W, u32 mask, const u32* address, u32 site) {
    each_lane(mask, [&](u32 l) {
        Barrier* barrier = object(W, l, address[l], site, true);
        if (barrier) barrier->valid = 0;
    });
}

void mbarrier_arrive(Warp& W, u32 mask, const u32* address, const u32* count, u32, u32 site,
                     u64* state) {
    each_lane(mask, [&](u32 l) {
        Barrier* barrier = object(W, l, address[l], site, true);
        if (!barrier) return;
        if (state) state[l] = barrier->phase;
        arrive_one(W, l, *barrier, count[l], address[l], site);
    });
}

// Arrives once the lane's copies have landed. They land here, as nothing later would wait for
// them but this barrier's phase. Without .noinc the pending count is first raised by one.
void mbarrier_arrive_async(Warp& W, u32 mask, const u32* address, u32 noinc, u32 site) {
    wait_async_all(W, mask);
    each_lane(mask, [&](u32 l) {
        Barrier* barrier = object(W, l, address[l], site, true);
        if (!barrier) return;
        if (!noinc) barrier->pending++;
        arrive_one(W, l, *barrier, 1, address[l], site);
    });
}

void mbarrier_test(Warp& W, u32 mask, const u32* address, const u64* state, u32 parity, u32 site,
                   u32* done) {
    bool all = false;
    each_lane(mask, [&](u32 l) {
        Barrier* barrier = object(W, l, address[l], site, true);
        if (!barrier) return;
        done[l] = parity ? (barrier->phase & 1) != (state[l] & 1)
                         : barrier->phase != static_cast<u16>(state[l]);
        all |= done[l] != 0;
    });
    if (all) passed(W);
}
