// Shared memory: bounds, words never written, copies in flight, races by clock, bank conflicts.
#include "access.h"
#include "sync.h"

namespace {

SharedShadow shadow_of(const Warp& W, u32 site) {
    return {W.block->traces, site};
}

// Where the lanes' addresses begin and end.
struct Extent {
    u32 least, most, low;

    explicit Extent(const u32* all) : least(all[0]), most(all[0]), low(0) {
        for (u32 l = 0; l < LANES; l++) {
            least = all[l] < least ? all[l] : least;
            most = all[l] > most ? all[l] : most;
            low |= all[l];
        }
    }
    bool inside(const Block& block, u32 bytes) const {
        return block.shared_bytes >= bytes && most <= block.shared_bytes - bytes &&
               !(low & (bytes - 1));
    }
};

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
    return (bytes + (1u << launch.shared_granule_shift) - 1) >> launch.shared_granule_shift;
}

void acquire_from(Warp& W, u64 entry) {
    if (W.launch->communicates && entry && thread_of(entry) >> 5 != W.index &&
        clock_of(entry) != CLOCK_MAX)
        acquire_warp(W, entry);
}

void tell(Warp& W, u32 kind, u32 site, u32 lane, u32 address, u32 bytes, u64 other) {
    fault(W, kind, site, lane, shared_to_generic(W, address), bytes, other & (FLAG | THREAD_MASK),
          static_cast<u32>(other >> 32));
}

void watch_read(Warp& W, u32 lane, u32 address, u32 bytes, u32 site, u32 kind) {
    SharedShadow shadow = shadow_of(W, site);
    const u32 first = address >> W.launch->shared_granule_shift;
    for (u32 k = 0; k < granules(*W.launch, bytes); k++) {
        const u64 entry = shadow.wrote(first + k);
        if (shadow.fresh(entry)) return tell(W, NOT_WRITTEN, site, lane, address, bytes, 0);
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
        if (kind != PLAIN) acquire_from(W, shadow.wrote(first + k));
        const u32 wrong = write_fault(W, shadow, first + k, lane, kind, other);
        const bool same =
            value && wrong != IN_FLIGHT && !memcmp(W.block->shared + address, value, bytes);
        if (wrong && !same && !told) {
            tell(W, wrong, site, lane, address, bytes, other);
            told = true;
        }
        shadow.write(first + k, entry_of(site, W.clock, W.index * LANES + lane) |
                                    (kind == PLAIN ? 0 : FLAG));
    }
}

// The granules of an access. Lanes that share addresses in runs (a broadcast, a row each) are a
// few to look at; lanes that fill a stretch, once or several times over, are that stretch; of
// others that lie close together the stretch is looked at first, and if that is not enough each.
struct Span {
    const u32* all;
    u32 each, shift, first = 0, count = 0;
    u32 runs;       // lanes whose address is not that of the lane before
    bool few;       // these are enough
    bool filled;    // the lanes touch every granule of the stretch

    Span(const u32* lanes, const Extent& extent, u32 bytes, u32 granule)
        : all(lanes), each(bytes >> granule), shift(granule), runs(1), filled(false) {
        for (u32 l = 1; l < LANES; l++) runs |= static_cast<u32>(lanes[l] != lanes[l - 1]) << l;
        few = lanes_in(runs) <= 4;
        if (few) return;
        first = extent.least >> shift;
        const u32 last = (extent.most >> shift) - first + each;
        count = last > LANES * each ? 0 : last;
        const u32 places = each ? count / each : 0;
        u32 apart = places & (places - 1);
        for (u32 l = 0; l < LANES; l++) apart |= lanes[l] ^ (lanes[0] + (l & (places - 1)) * bytes);
        filled = places && !apart;
    }

    // What f finds in any of the granules, as bits. Only all of `wanted` together are worth more
    // than a look at the whole stretch.
    template <class F>
    u32 any(u32 wanted, F&& f) const {
        u32 found = 0;
        if (few) {
            each_lane(runs, [&](u32 l) {
                for (u32 k = 0; k < each; k++) found |= f((all[l] >> shift) + k);
            });
            return found;
        }
        if (count) {
            for (u32 i = 0; i < count; i++) found |= f(first + i);
            if (filled || (found & wanted) != wanted) return found;
            found = 0;
        }
        for (u32 k = 0; k < each; k++)
            for (u32 l = 0; l < LANES; l++) found |= f((all[l] >> shift) + k);
        return found;
    }
};

// Whether nothing is wrong with a read by any lane: what is there was written before the floor.
bool read_is_fine(const Warp& W, const Span& span) {
    const u32* writer = W.block->traces.writer;
    const u32 limit = (W.floor + 1) << CLOCK_SHIFT;
    // The clock and the thread; 0 where nobody has written, and 0 - 1 is the largest.
    return !span.any(1, [&](u32 at) -> u32 { return writer[at] - 1 >= limit - 1; });
}

// Notes a read of every granule of a stretch, as note_read() does one by one.
void note_stretch(Warp& W, const Span& span, u32 site, u32 limit, u32 mine) {
    u32* reader = W.block->traces.reader + span.first;
    u32* from = W.block->traces.reader_site + span.first;
    const u32 each = span.each;
    for (u32 i = 0; i < span.count; i++) {
        const u32 read = reader[i], now = mine + i / each;
        const u32 recent = read >= limit, foreign = recent & ((read & THREAD_MASK) >> 5 != W.index);
        const u32 several = recent & (read >> 10 & 1);
        reader[i] = several ? read : now | foreign << 10;
        from[i] = several ? from[i] : site;
    }
}

// Notes a read by all lanes of the mask, where nothing is wrong with it.
void note_reads(Warp& W, u32 mask, const Span& span, u32 site) {
    u32* reader = W.block->traces.reader;
    u32* from = W.block->traces.reader_site;
    const u32 limit = (W.floor + 1) << CLOCK_SHIFT;
    const u32 mine = static_cast<u32>(entry_of(0, W.clock, W.index * LANES)), own = mine & ~31u;
    constexpr u32 UNKNOWN = 1, RECENT = 2;
    const u32 found = span.any(UNKNOWN | RECENT, [&](u32 at) -> u32 {
        const u32 read = reader[at], recent = read >= limit;
        return (static_cast<u32>(!(recent & (read >> 10 & 1)) & ((read & ~31u) != own))) |
               recent << 1;
    });
    if (!(found & UNKNOWN)) return;
    const u32* all = span.all;
    const u32 each = span.each, shift = span.shift;
    if (span.filled && mask == ALL && !W.known) return note_stretch(W, span, site, limit, mine);
    if (!span.few && !(found & RECENT)) {
        const auto note = [&](u32 l) {
            for (u32 k = 0; k < each; k++) {
                reader[(all[l] >> shift) + k] = mine + l;
                from[(all[l] >> shift) + k] = site;
            }
        };
        if (mask == ALL)
            for (u32 l = 0; l < LANES; l++) note(l);
        else
            each_lane(mask, note);
        return;
    }
    SharedShadow shadow = shadow_of(W, site);
    each_lane(span.runs, [&](u32 l) {
        const u32 lane = mask >> l & 1 ? l : first_lane(mask);
        for (u32 k = 0; k < each; k++) note_read(W, shadow, (all[l] >> shift) + k, lane);
    });
}

bool write_quick(Warp& W, u32 mask, const u32* address, u32 bytes, u32 site) {
    const u32 shift = W.launch->shared_granule_shift, each = bytes >> shift;
    const Traces& traces = W.block->traces;
    const u32 limit = (W.floor + 1) << CLOCK_SHIFT;
    const u32 mine = static_cast<u32>(entry_of(0, W.clock, W.index * LANES));
    const u32 now = W.clock << CLOCK_SHIFT;
    u32 bad = 0;
    for (u32 k = 0; k < each; k++)
        for (u32 l = 0; l < LANES; l++) {
            const u32 at = (address[l] >> shift) + k;
            const u32 read = traces.reader[at];
            const u32 foreign = ((read & (FLAG | THREAD_MASK)) >> 5) != W.index;
            const u32 unsynced = (read >= now) & ((read & THREAD_MASK) != (mine & THREAD_MASK) + l);
            bad |= (traces.writer[at] >= limit) | ((read >= limit) & (foreign | unsynced));
        }
    if (bad) return false;
    each_lane(mask, [&](u32 l) {
        for (u32 k = 0; k < each; k++) {
            traces.writer[(address[l] >> shift) + k] = mine + l;
            traces.writer_site[(address[l] >> shift) + k] = site;
        }
    });
    return true;
}

// Whether it is plain how many wavefronts there are: words that all lie within 128 bytes are in
// different banks, lanes side by side need as many passes as their bytes need, and loads of one
// address go two groups of lanes at a time.
template <int N, bool LOAD>
bool is_plain(const Extent& extent, bool dense, u32 mask, u32& wavefronts) {
    wavefronts = N <= 4 ? 1 : static_cast<u32>(LANES * N / 128);
    if (N <= 4 && (extent.most >> 2) - (extent.least >> 2) < 32) return true;
    if (mask != ALL || N < 4) return false;
    const bool one = extent.most == extent.least;
    if (one && LOAD && N > 4) wavefronts /= 2;
    return dense || one;
}

template <int N>
void load(Warp& W, u32 mask, const u32* address, u32 site, u8* pack, u32 kind) {
    if (!mask) return;
    const Launch& launch = *W.launch;
    if (kind == PLAIN) W.touched = W.clock;
    alignas(64) u32 room[LANES];
    const u32* all = spread(address, mask, room);
    Extent extent(all);
    if (!extent.inside(*W.block, N)) {
        const u32 wanted = mask;
        mask = refuse(W, mask, address, site, N);
        clear<N>(pack, wanted & ~mask);
        if (!mask) return;
        all = spread(address, mask, room);
        extent = Extent(all);
    }
    const bool dense = is_dense<N>(all, mask);
    if (launch.counts) {
        u32 wavefronts;
        if (!is_plain<N, true>(extent, dense, mask, wavefronts))
            wavefronts = wavefronts_of<N, true>(all, mask);
        count_shared(W, site, mask, N, wavefronts);
    }
    if (launch.checks) {
        const Span span(all, extent, N, launch.shared_granule_shift);
        if (kind == PLAIN && span.each && read_is_fine(W, span))
            note_reads(W, mask, span, site);
        else
            each_lane(mask, [&](u32 l) { watch_read(W, l, address[l], N, site, kind); });
    }
    const u8* shared = W.block->shared;
    if (dense) {
        memcpy(pack, shared + all[0], LANES * N);
    } else if (mask == ALL) {
        for (u32 l = 0; l < LANES; l++) memcpy(pack + l * N, shared + address[l], N);
    } else {
        each_lane(mask, [&](u32 l) { memcpy(pack + l * N, shared + address[l], N); });
    }
}

template <int N>
void store(Warp& W, u32 mask, const u32* address, u32 site, const u8* pack, u32 kind) {
    if (!mask) return;
    const Launch& launch = *W.launch;
    alignas(64) u32 room[LANES];
    W.worker->progress++;
    W.touched = W.clock;
    const u32* all = spread(address, mask, room);
    Extent extent(all);
    if (!extent.inside(*W.block, N)) {
        mask = refuse(W, mask, address, site, N);
        if (!mask) return;
        all = spread(address, mask, room);
        extent = Extent(all);
    }
    const bool dense = is_dense<N>(all, mask);
    if (launch.counts) {
        u32 wavefronts;
        if (!is_plain<N, false>(extent, dense, mask, wavefronts))
            wavefronts = wavefronts_of<N, false>(all, mask);
        count_shared(W, site, mask, N, wavefronts);
    }
    if (launch.checks) {
        const u32 kept = without_twins<N>(W, mask, address, site, pack, kind);
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
        const u32* writer = W.block->traces.writer + (address >> W.launch->shared_granule_shift);
        bool written = true;
        for (u32 k = 0; k < granules(*W.launch, bytes); k++) written &= writer[k] != 0;
        if (!written) tell(W, NOT_WRITTEN, site, lane, address, bytes, 0);
        watch_write(W, lane, address, bytes, site, ATOMIC, nullptr);
    }
    return W.block->shared + address;
}

// Every lane of a bank takes a pass of its own, also where two of them name one word. 8-byte ones
// go half a warp at a time.
void count_shared_atomic(Warp& W, u32 mask, const u32* address, u32 site, u32 bytes) {
    u32 wavefronts = 0;
    const u32 half = ALL >> 16, groups[] = {bytes == 8 ? half : ALL, bytes == 8 ? ~half : 0};
    for (const u32 group : groups) {
        u32 depth[LANES] = {}, most = 0;
        each_lane(mask & group, [&](u32 l) {
            const u32 lanes = ++depth[address[l] >> 2 & 31];
            most = lanes > most ? lanes : most;
        });
        wavefronts += most;
    }
    count_shared(W, site, mask, bytes, wavefronts);
}

// The bytes that a copy will fill: in flight from now until its lane waits for it.
bool begin_copy(Warp& W, u32 lane, u32 address, u32 bytes, u32 site) {
    W.touched = W.clock;
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
        shadow.write(first + k, entry_of(site, CLOCK_MAX, W.index * LANES + lane));
    }
    return true;
}

void land_copy(Warp& W, const AsyncCopy& copy) {
    u8* to = W.block->shared + copy.to;
    memset(to, 0, copy.bytes);
    if (copy.source_bytes) memcpy(to, copy.host, copy.source_bytes);
    W.worker->progress++;
    W.touched = W.clock;
    if (!W.launch->checks) return;
    const u32 first = copy.to >> W.launch->shared_granule_shift;
    SharedShadow shadow = shadow_of(W, copy.site);
    for (u32 k = 0; k < granules(*W.launch, copy.bytes); k++)
        shadow.write(first + k, entry_of(copy.site, W.clock, W.index * LANES + copy.lane));
}

void read_row(Warp& W, u32 site, u32 lane, u32 address, u32 bytes, void* to) {
    u32 at[LANES];
    at[lane] = address;
    if (!refuse(W, 1u << lane, at, site, bytes)) return;
    W.touched = W.clock;
    if (W.launch->checks) watch_read(W, lane, address, bytes, site, PLAIN);
    memcpy(to, W.block->shared + address, bytes);
}

void write_row(Warp& W, u32 site, u32 lane, u32 address, u32 bytes, const void* from) {
    u32 at[LANES];
    at[lane] = address;
    if (!refuse(W, 1u << lane, at, site, bytes)) return;
    W.worker->progress++;
    W.touched = W.clock;
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
    W.touched = W.clock;
    count_rows(W, site, address, matrices);
    const u32 used = matrices == 4 ? ALL : (1u << matrices * 8) - 1;
    alignas(64) u32 room[LANES];
    const u32* all = spread(address, used, room);
    const Extent extent(all);
    const Span span(all, extent, 16, W.launch->shared_granule_shift);
    const bool quick =
        extent.inside(*W.block, 16) && (!W.launch->checks || read_is_fine(W, span));
    if (quick && W.launch->checks) note_reads(W, used, span, site);
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
