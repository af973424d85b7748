// Shared memory: bounds, words never written, copies in flight, races by clock, bank conflicts.
#include "access.h"
#include "sync.h"

namespace {

SharedShadow shadow_of(const Warp& W, u32 site) {
    return {W.block->shared_writer, W.block->shared_reader, site};
}

template <int N>
bool in_bounds(const Block& block, u32 mask, const u32* address, u32* all) {
    if (block.shared_bytes < N) return false;
    spread(address, mask, all);
    const u32 last = block.shared_bytes - N;
    u32 low = 0;
    bool beyond = false;
    for (u32 l = 0; l < LANES; l++) {
        beyond |= all[l] > last;
        low |= all[l];
    }
    return !beyond && !(low & (N - 1));
}

u32 refuse(Warp& W, u32 mask, const u32* address, u32 site, u32 bytes) {
    const Block& block = *W.block;
    u32 kept = 0;
    each_lane(mask, [&](u32 l) {
        if (block.shared_bytes < bytes || address[l] > block.shared_bytes - bytes)
            fault(W, OUT_OF_BOUNDS, site, l, shared_to_generic(W, address[l]), bytes);
        else if (address[l] & (bytes - 1))
            fault(W, MISALIGNED, site, l, shared_to_generic(W, address[l]), bytes);
        else
            kept |= 1u << l;
    });
    return kept;
}

u32 granules(const Launch& launch, u32 bytes) {
    const u32 count = bytes >> launch.shared_granule_shift;
    return count ? count : 1;
}

void acquire_from(Warp& W, u64 entry) {
    if (W.launch->communicates && entry && thread_of(entry) >> 5 != W.index &&
        clock_of(entry) != CLOCK_MAX)
        acquire_warp(W, entry);
}

void tell(Warp& W, u32 kind, u32 site, u32 lane, u32 address, u32 bytes, u64 other) {
    fault(W, kind, site, lane, shared_to_generic(W, address), bytes, thread_of(other),
          static_cast<u32>(other >> 32));
}

void watch_read(Warp& W, u32 lane, u32 address, u32 bytes, u32 site, u32 kind) {
    SharedShadow shadow = shadow_of(W, site);
    const u32 first = address >> W.launch->shared_granule_shift;
    for (u32 k = 0; k < granules(*W.launch, bytes); k++) {
        const u64 entry = shadow.writer[first + k];
        if (!entry) return tell(W, NOT_WRITTEN, site, lane, address, bytes, 0);
        if (kind != PLAIN) acquire_from(W, entry);
        const u32 wrong = read_fault(W, shadow, first + k, lane, kind);
        if (wrong) return tell(W, wrong, site, lane, address, bytes, entry);
        if (kind == PLAIN) note_read(W, shadow, first + k, lane);
    }
}

void watch_write(Warp& W, u32 lane, u32 address, u32 bytes, u32 site, u32 kind, const u8* value) {
    SharedShadow shadow = shadow_of(W, site);
    const u32 first = address >> W.launch->shared_granule_shift;
    bool told = false;
    for (u32 k = 0; k < granules(*W.launch, bytes); k++) {
        u64 other = 0;
        if (kind != PLAIN) acquire_from(W, shadow.writer[first + k]);
        const u32 wrong = write_fault(W, shadow, first + k, lane, kind, other);
        const bool same =
            value && wrong != IN_FLIGHT && !memcmp(W.block->shared + address, value, bytes);
        if (wrong && !same && !told) {
            tell(W, wrong, site, lane, address, bytes, other);
            told = true;
        }
        shadow.writer[first + k] = entry_of(site, W.clock, W.index * LANES + lane) |
                                   (kind == PLAIN ? 0 : FLAG);
    }
}

// All lanes at once, where every granule was last touched before the floor.
bool read_quick(Warp& W, const u32* address, bool dense, u32 bytes, u32 site) {
    const u32 shift = W.launch->shared_granule_shift;
    const u64* writer = W.block->shared_writer;
    u64* reader = W.block->shared_reader;
    const u32 limit = (W.floor + 1) << CLOCK_SHIFT;
    const u64 mine = entry_of(site, W.clock, W.index * LANES);
    if (dense) {
        const u32 first = address[0] >> shift, count = bytes * LANES >> shift;
        bool fine = true, fresh = true, noted = true;
        for (u32 i = 0; i < count; i++) {
            const u64 wrote = writer[first + i];
            const u32 read = static_cast<u32>(reader[first + i]);
            fine &= (wrote != 0) & (static_cast<u32>(wrote) < limit);
            fresh &= read < limit;
            noted &= (read >= limit) & ((read & FLAG) != 0);
        }
        if (!fine || !(fresh || noted)) return false;
        const u32 each = count / LANES;
        if (fresh)
            for (u32 i = 0; i < count; i++) reader[first + i] = mine + i / each;
        return true;
    }
    const u32 each = bytes >> shift;
    bool fine = true, noted = true, fresh = true;
    for (u32 k = 0; k < each; k++)
        for (u32 l = 0; l < LANES; l++) {
            const u32 at = (address[l] >> shift) + k;
            const u64 wrote = writer[at];
            const u32 read = static_cast<u32>(reader[at]);
            fine &= (wrote != 0) & (static_cast<u32>(wrote) < limit);
            fresh &= read < limit;
            noted &= ((read >= limit) & ((read & FLAG) != 0)) |
                     ((read & ~31u) == (static_cast<u32>(mine) & ~31u));
        }
    if (!fine || !(noted || fresh)) return false;
    if (!noted)
        for (u32 k = 0; k < each; k++)
            for (u32 l = 0; l < LANES; l++) reader[(address[l] >> shift) + k] = mine + l;
    return true;
}

bool write_quick(Warp& W, u32 mask, const u32* address, u32 bytes, u32 site) {
    const u32 shift = W.launch->shared_granule_shift, each = bytes >> shift;
    u64* writer = W.block->shared_writer;
    const u64* reader = W.block->shared_reader;
    const u32 limit = (W.floor + 1) << CLOCK_SHIFT;
    const u64 mine = entry_of(site, W.clock, W.index * LANES);
    bool fine = true;
    for (u32 k = 0; k < each; k++)
        for (u32 l = 0; l < LANES; l++) {
            const u32 at = (address[l] >> shift) + k;
            const u32 read = static_cast<u32>(reader[at]);
            const bool own = (read >> 5 & (THREAD_MASK >> 5)) == W.index && !(read & FLAG);
            fine &= (static_cast<u32>(writer[at]) < limit) & ((read < limit) | own);
        }
    if (!fine) return false;
    if (mask == ALL)
        for (u32 k = 0; k < each; k++)
            for (u32 l = 0; l < LANES; l++) writer[(address[l] >> shift) + k] = mine + l;
    else
        each_lane(mask, [&](u32 l) {
            for (u32 k = 0; k < each; k++) writer[(address[l] >> shift) + k] = mine + l;
        });
    return true;
}

template <int N>
bool same_or_dense(const u32* address, u32 mask, u32& wavefronts) {
    if (mask != ALL || N < 4) return false;
    bool dense = true, same = true;
    for (u32 l = 0; l < LANES; l++) {
        dense &= address[l] == address[0] + l * N;
        same &= address[l] == address[0];
    }
    wavefronts = N <= 4 ? 1 : static_cast<u32>(LANES * N / 128);
    return dense || same;
}

template <int N>
void load(Warp& W, u32 mask, const u32* address, u32 site, u8* pack, u32 kind) {
    if (!mask) return;
    const Launch& launch = *W.launch;
    alignas(64) u32 all[LANES];
    if (!in_bounds<N>(*W.block, mask, address, all)) {
        mask = refuse(W, mask, address, site, N);
        if (!mask) return;
        spread(address, mask, all);
    }
    if (launch.counts) {
        u32 wavefronts;
        if (!same_or_dense<N>(all, mask, wavefronts)) wavefronts = wavefronts_of<N>(all, mask);
        count_shared(W, site, mask, N, wavefronts);
    }
    const bool dense = is_dense<N>(all, mask);
    if (launch.checks) {
        const bool quick = kind == PLAIN && N >> launch.shared_granule_shift &&
                           read_quick(W, all, dense, N, site);
        if (!quick)
            each_lane(mask, [&](u32 l) { watch_read(W, l, address[l], N, site, kind); });
    }
    const u8* shared = W.block->shared;
    if (dense) {
        memcpy(pack, shared + all[0], LANES * N);
    } else if (mask == ALL) {
        for (u32 l = 0; l < LANES; l++) memcpy(pack + l * N, shared + all[l], N);
    } else {
        each_lane(mask, [&](u32 l) { memcpy(pack + l * N, shared + address[l], N); });
    }
}

template <int N>
void store(Warp& W, u32 mask, const u32* address, u32 site, const u8* pack, u32 kind) {
    if (!mask) return;
    const Launch& launch = *W.launch;
    alignas(64) u32 all[LANES];
    W.worker->progress++;
    if (!in_bounds<N>(*W.block, mask, address, all)) {
        mask = refuse(W, mask, address, site, N);
        if (!mask) return;
        spread(address, mask, all);
    }
    if (launch.counts) {
        u32 wavefronts;
        if (!same_or_dense<N>(all, mask, wavefronts)) wavefronts = wavefronts_of<N>(all, mask);
        count_shared(W, site, mask, N, wavefronts);
    }
    if (launch.checks) {
        const u32 kept = without_twins<N>(W, mask, address, site, pack);
        const bool quick = kind == PLAIN && N >> launch.shared_granule_shift &&
                           write_quick(W, kept, all, N, site);
        if (!quick)
            each_lane(kept, [&](u32 l) {
                watch_write(W, l, address[l], N, site, kind, pack + l * N);
            });
    }
    u8* shared = W.block->shared;
    each_lane(mask, [&](u32 l) { memcpy(shared + address[l], pack + l * N, N); });
}

}  // namespace

template <int N>
void load_shared(Warp& W, u32 mask, const u32* address, u32 site, void* pack) {
    load<N>(W, mask, address, site, static_cast<u8*>(pack), PLAIN);
}

template <int N>
void store_shared(Warp& W, u32 mask, const u32* address, u32 site, const void* pack) {
    store<N>(W, mask, address, site, static_cast<const u8*>(pack), PLAIN);
}

template <int N>
void load_shared_strong(Warp& W, u32 mask, const u32* address, u32 site, void* pack) {
    load<N>(W, mask, address, site, static_cast<u8*>(pack), STRONG);
}

template <int N>
void store_shared_strong(Warp& W, u32 mask, const u32* address, u32 site, const void* pack) {
    store<N>(W, mask, address, site, static_cast<const u8*>(pack), STRONG);
}

u8* atomic_shared(Warp& W, u32 lane, u32 address, u32 bytes, u32 site) {
    u32 at[LANES];
    at[lane] = address;
    if (!refuse(W, 1u << lane, at, site, bytes)) return nullptr;
    if (W.launch->checks) {
        if (!W.block->shared_writer[address >> W.launch->shared_granule_shift])
            tell(W, NOT_WRITTEN, site, lane, address, bytes, 0);
        watch_write(W, lane, address, bytes, site, ATOMIC, nullptr);
    }
    return W.block->shared + address;
}

void count_shared_atomic(Warp& W, u32 mask, const u32* address, u32 site, u32 bytes) {
    count_shared(W, site, mask, bytes,
                 bytes == 8 ? wavefronts_of<8>(address, mask) : wavefronts_of<4>(address, mask));
}

// The bytes that a copy will fill: in flight from now until its lane waits for it.
bool begin_copy(Warp& W, u32 lane, u32 address, u32 bytes, u32 site) {
    u32 at[LANES];
    at[lane] = address;
    if (!refuse(W, 1u << lane, at, site, bytes)) return false;
    if (!W.launch->checks) return true;
    SharedShadow shadow = shadow_of(W, site);
    const u32 first = address >> W.launch->shared_granule_shift;
    bool told = false;
    for (u32 k = 0; k < granules(*W.launch, bytes); k++) {
        u64 other = 0;
        const u32 wrong = write_fault(W, shadow, first + k, lane, PLAIN, other);
        if (wrong && !told) {
            tell(W, wrong, site, lane, address, bytes, other);
            told = true;
        }
        shadow.writer[first + k] = entry_of(site, CLOCK_MAX, W.index * LANES + lane);
    }
    return true;
}

void land_copy(Warp& W, const AsyncCopy& copy) {
    u8* to = W.block->shared + copy.to;
    memset(to, 0, copy.bytes);
    if (copy.source_bytes) memcpy(to, copy.host, copy.source_bytes);
    W.worker->progress++;
    if (!W.launch->checks) return;
    const u32 first = copy.to >> W.launch->shared_granule_shift;
    for (u32 k = 0; k < granules(*W.launch, copy.bytes); k++)
        W.block->shared_writer[first + k] =
            entry_of(copy.site, W.clock, W.index * LANES + copy.lane);
}

void read_row(Warp& W, u32 site, u32 lane, u32 address, u32 bytes, void* to) {
    u32 at[LANES];
    at[lane] = address;
    if (!refuse(W, 1u << lane, at, site, bytes)) return;
    if (W.launch->checks) watch_read(W, lane, address, bytes, site, PLAIN);
    memcpy(to, W.block->shared + address, bytes);
}

void write_row(Warp& W, u32 site, u32 lane, u32 address, u32 bytes, const void* from) {
    u32 at[LANES];
    at[lane] = address;
    if (!refuse(W, 1u << lane, at, site, bytes)) return;
    W.worker->progress++;
    if (W.launch->checks)
        watch_write(W, lane, address, bytes, site, PLAIN, static_cast<const u8*>(from));
    memcpy(W.block->shared + address, from, bytes);
}

// ldmatrix and stmatrix: eight rows of 16 bytes a matrix, a pass each without conflicts.
void count_rows(Warp& W, u32 site, const u32* address, u32 matrices) {
    if (!W.launch->counts) return;
    u32 wavefronts = 0;
    for (u32 q = 0; q < matrices; q++) {
        u32 depth[32] = {}, most = 0;
        for (u32 r = 0; r < 8; r++)
            for (u32 k = 0; k < 4; k++) {
                const u32 bank = ((address[q * 8 + r] >> 2) + k) & 31;
                most = ++depth[bank] > most ? depth[bank] : most;
            }
        wavefronts += most;
    }
    SiteCount& count = W.worker->site[site];
    count.requests++;
    count.lanes += LANES;
    count.wavefronts += wavefronts;
    count.ideal_wavefronts += matrices;
    count.bytes += matrices * 128;
}

void load_matrix(Warp& W, u32 site, const u32* address, u32 matrices, u32 transposed,
                 u32* const* to) {
    if (W.mask != W.alive || W.mask != ALL) return not_converged(W, site, W.mask);
    count_rows(W, site, address, matrices);
    const u32 used = matrices == 4 ? ALL : (1u << matrices * 8) - 1;
    alignas(64) u32 all[LANES];
    const bool quick = in_bounds<16>(*W.block, used, address, all) &&
                       (!W.launch->checks || read_quick(W, all, false, 16, site));
    u16 rows[LANES][8] = {};
    each_lane(used, [&](u32 l) {
        if (quick)
            memcpy(rows[l], W.block->shared + address[l], 16);
        else
            read_row(W, site, l, address[l], 16, rows[l]);
    });
    for (u32 q = 0; q < matrices; q++)
        for (u32 l = 0; l < LANES; l++) {
            const u32 major = l >> 2, minor = (l & 3) * 2;
            const u16 low = transposed ? rows[q * 8 + minor][major] : rows[q * 8 + major][minor];
            const u16 high =
                transposed ? rows[q * 8 + minor + 1][major] : rows[q * 8 + major][minor + 1];
            to[q][l] = low | static_cast<u32>(high) << 16;
        }
}

void store_matrix(Warp& W, u32 site, const u32* address, u32 matrices, u32 transposed,
                  const u32* const* from) {
    if (W.mask != ALL) return not_converged(W, site, W.mask);
    count_rows(W, site, address, matrices);
    u16 rows[LANES][8] = {};
    for (u32 q = 0; q < matrices; q++)
        for (u32 l = 0; l < LANES; l++)
            for (u32 half = 0; half < 2; half++) {
                const u32 major = l >> 2, minor = (l & 3) * 2 + half;
                const u16 value = static_cast<u16>(from[q][l] >> (16 * half));
                (transposed ? rows[q * 8 + minor][major] : rows[q * 8 + major][minor]) = value;
            }
    for (u32 l = 0; l < matrices * 8; l++) write_row(W, site, l, address[l], 16, rows[l]);
}

#define SIMT_EACH(N)                                                                       \
    template void load_shared<N>(Warp&, u32, const u32*, u32, void*);                      \
    template void store_shared<N>(Warp&, u32, const u32*, u32, const void*);               \
    template void load_shared_strong<N>(Warp&, u32, const u32*, u32, void*);               \
    template void store_shared_strong<N>(Warp&, u32, const u32*, u32, const void*);
SIMT_EACH(1) SIMT_EACH(2) SIMT_EACH(4) SIMT_EACH(8) SIMT_EACH(16)
#undef SIMT_EACH
