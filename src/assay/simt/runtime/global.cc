// Global and constant memory: windows, bounds, bytes never written, races, sectors.
#include "record.h"
#include "sync.h"

namespace {

Window* window_of(const Launch& launch, u64 address) {
    const u64 number = address >> WINDOW_SHIFT;
    if (number < FIRST_WINDOW || number >= FIRST_WINDOW + launch.windows) return nullptr;
    return &launch.window[number - FIRST_WINDOW];
}

// A real address of the process, as a kernel finds it in memory, in the window that holds it.
u64 translate(const Launch& launch, u64 address) {
    if (address >> WINDOW_SHIFT >= SHARED_WINDOW) return address;
    for (u64 i = 0; i < launch.windows; i++) {
        const Window& window = launch.window[i];
        const u64 start = reinterpret_cast<u64>(window.host);
        if (address >= start && address < start + window.bytes)
            return ((FIRST_WINDOW + i) << WINDOW_SHIFT) + (address - start);
    }
    return address;
}

struct Lanes {
    Window* window;
    u64 number;     // of the window
    u64 offset[LANES];
};

// Whether all lanes lie, aligned, in one window: the usual case, without a branch a lane.
template <int N>
bool in_one_window(const Launch& launch, u32 mask, const u64* address, Lanes& lanes) {
    alignas(64) u64 room[LANES];
    const u64* all = spread(address, mask, room);
    lanes.window = window_of(launch, all[0]);
    if (!lanes.window || lanes.window->bytes < N) return false;
    lanes.number = (all[0] >> WINDOW_SHIFT) - FIRST_WINDOW;
    const u64 start = all[0] & ~OFFSET_MASK, last = lanes.window->bytes - N;
    u64 low = 0, beyond = 0;
    for (u32 l = 0; l < LANES; l++) {
        const u64 offset = all[l] - start;
        lanes.offset[l] = offset;
        beyond |= offset | (last - offset);  // beyond the last one, the difference is negative
        low |= offset;
    }
    return !(beyond >> 63) && !(low & (N - 1));
}

// Lanes that may go on, after the faults of the others are noted.
u32 refuse(Warp& W, u32 mask, const u64* address, u32 site, u32 bytes, bool write) {
    const Launch& launch = *W.launch;
    u32 kept = 0;
    each_lane(mask, [&](u32 l) {
        const u64 at = address[l];
        const u64 number = at >> WINDOW_SHIFT;
        const Window* window = window_of(launch, at);
        if (!window) {
            const bool other = number >= SHARED_WINDOW && number <= PARAMETER_WINDOW;
            const u32 kind = other ? WRONG_SPACE : at < 4096 ? NULL_POINTER : OUT_OF_BOUNDS;
            return fault(W, kind, site, l, at, bytes);
        }
        const u64 offset = at & OFFSET_MASK;
        if (window->bytes < bytes || offset > window->bytes - bytes)
            return fault(W, OUT_OF_BOUNDS, site, l, at, bytes);
        if (at & (bytes - 1)) return fault(W, MISALIGNED, site, l, at, bytes);
        if (write && window->flags & 1) return fault(W, READ_ONLY, site, l, at, bytes);
        kept |= 1u << l;
    });
    return kept;
}

GlobalShadow shadow_of(Warp& W, u64 number) {
    const Launch& launch = *W.launch;
    return {W.worker->writer[number], W.worker->reader[number], W.worker->writer_site[number],
            launch.first_block << 32, W.block->number};
}

u32 granules(const Launch& launch, u32 bytes) {
    return (bytes + (1u << launch.granule_shift) - 1) >> launch.granule_shift;
}

void check_written(Warp& W, const Window& window, u32 lane, u64 offset, u32 site, u64 address,
                   u32 bytes) {
    for (u32 k = 0; k < bytes; k++)
        if (!window.written[offset + k]) return fault(W, NOT_WRITTEN, site, lane, address, bytes);
}

void acquire_from(Warp& W, GlobalShadow& shadow, u64 granule);

// One lane's read, with every test.
void watch_read(Warp& W, Window& window, u64 number, u32 lane, u64 offset, u32 bytes, u32 site,
                u64 address, u32 kind) {
    if (window.written) check_written(W, window, lane, offset, site, address, bytes);
    GlobalShadow shadow = shadow_of(W, number);
    const u64 first = offset >> W.launch->granule_shift;
    for (u32 k = 0; k < granules(*W.launch, bytes); k++) {
        if (kind != PLAIN) acquire_from(W, shadow, first + k);
        const u32 wrong = read_fault(W, shadow, first + k, lane, kind);
        if (wrong) {
            fault(W, wrong, site, lane, address, bytes, shadow.writer[first + k],
                  shadow.site[first + k]);
            break;
        }
        if (kind == PLAIN) note_read(W, shadow, first + k, lane);
    }
}

void watch_write(Warp& W, Window& window, u64 number, u32 lane, u64 offset, u32 bytes, u32 site,
                 u64 address, u32 kind, const u8* value) {
    GlobalShadow shadow = shadow_of(W, number);
    W.worker->wrote[number] = 1;
    const u64 first = offset >> W.launch->granule_shift;
    bool told = false;
    for (u32 k = 0; k < granules(*W.launch, bytes); k++) {
        u64 other = 0;
        if (kind != PLAIN) acquire_from(W, shadow, first + k);
        const u32 wrong = write_fault(W, shadow, first + k, lane, kind, other);
        // Who writes what is there already changes nothing for anybody.
        const bool same = value && !memcmp(window.host + offset, value, bytes);
        if (wrong && !same && !told) {
            const bool wrote = other == shadow.writer[first + k];
            fault(W, wrong, site, lane, address, bytes, other,
                  wrote ? shadow.site[first + k] : ALL);
            told = true;
        }
        shadow.writer[first + k] = entry_of(shadow.high, W.clock, W.index * LANES + lane) |
                                   (kind == PLAIN ? 0 : FLAG);
        shadow.site[first + k] = site;
    }
    if (window.written) memset(window.written + offset, 1, bytes);
}

// A strong access sees who wrote before it, and so comes after what that one had released.
void acquire_from(Warp& W, GlobalShadow& shadow, u64 granule) {
    const u64 entry = shadow.writer[granule];
    if (!W.launch->communicates || shadow.fresh(entry)) return;
    if (!shadow.same(entry))
        acquire_block(W, entry);
    else if (thread_of(entry) >> 5 != W.index)
        acquire_warp(W, entry);
}

// All lanes of a dense read at once; false where some granule needs a closer look.
bool read_dense(Warp& W, const Window& window, u64 number, u64 offset, u32 bytes) {
    const u32 shift = W.launch->granule_shift;
    if (window.written) {
        u8 all = 1;
        for (u32 i = 0; i < bytes; i++) all &= window.written[offset + i];
        if (!all) return false;
    }
    GlobalShadow shadow = shadow_of(W, number);
    const u64 first = offset >> shift;
    const u32 count = bytes >> shift;
    const u64* writer = shadow.writer + first;
    u64* reader = shadow.reader + first;
    const u64 mine = entry_of(shadow.high, W.clock, W.index * LANES);
    const u64 aside = entry_of(0, CLOCK_MAX, 31), many = entry_of(0, CLOCK_MAX, 0) | FLAG;
    u64 wrote = 0, foreign = 0;
    if ((reader[0] & many) == many && reader[0] >= shadow.limit) {
        for (u32 i = 0; i < count; i++) {
            wrote |= (writer[i] >= shadow.limit) | (reader[i] < shadow.limit);
            foreign |= (reader[i] & many) ^ many;
        }
        return !wrote && !foreign;  // several blocks have read all of it
    }
    for (u32 i = 0; i < count; i++) {
        wrote |= (writer[i] >= shadow.limit);
        foreign |= (reader[i] >= shadow.limit) & (((reader[i] ^ mine) & ~aside) != 0);
    }
    if (wrote || foreign) return false;
    const u32 each = count / LANES;
    if (each == 1)
        for (u32 l = 0; l < LANES; l++) reader[l] = mine + l;
    else
        for (u32 i = 0; i < count; i++) reader[i] = mine + i / each;
    return true;
}

bool write_dense(Warp& W, const Window& window, u64 number, u64 offset, u32 bytes, u32 site) {
    GlobalShadow shadow = shadow_of(W, number);
    W.worker->wrote[number] = 1;
    const u32 shift = W.launch->granule_shift;
    const u64 first = offset >> shift;
    const u32 count = bytes >> shift, each = count / LANES;
    u64* writer = shadow.writer + first;
    const u64* reader = shadow.reader + first;
    const u64 mine = entry_of(shadow.high, W.clock, W.index * LANES);
    u64 taken = 0;
    if (each == 1) {
        const u64 clock = static_cast<u64>(CLOCK_MAX) << CLOCK_SHIFT;
        for (u32 l = 0; l < LANES; l++) {
            const u64 foreign = ((reader[l] & ~clock) != ((mine + l) & ~clock));
            taken |= (writer[l] >= shadow.limit) | ((reader[l] >= shadow.limit) & foreign);
        }
        if (taken) return false;
        for (u32 l = 0; l < LANES; l++) writer[l] = mine + l;
    } else {
        for (u32 i = 0; i < count; i++)
            taken |= (writer[i] >= shadow.limit) | (reader[i] >= shadow.limit);
        if (taken) return false;
        for (u32 i = 0; i < count; i++) writer[i] = mine + i / each;
    }
    for (u32 i = 0; i < count; i++) shadow.site[first + i] = site;
    if (window.written) memset(window.written + offset, 1, bytes);
    return true;
}

// Lanes anywhere in a window that nobody has written in this launch and whose readers need no
// note: one pass of gathers, for the reads that all warps and blocks share.
bool read_scattered(Warp& W, const Window& window, u64 number, const u64* offset, u32 bytes) {
    const u32 shift = W.launch->granule_shift;
    if (window.written || bytes >> shift != 1) return false;
    GlobalShadow shadow = shadow_of(W, number);
    const u64 many = entry_of(0, CLOCK_MAX, 0) | FLAG;
    const u64 own = entry_of(shadow.high, W.clock, W.index * LANES) & ~u64{31};
    u64 bad = 0;
    for (u32 l = 0; l < LANES; l++) {
        const u64 at = offset[l] >> shift;
        const u64 reader = shadow.reader[at];
        const u64 shared = ((reader & many) == many) & (reader >= shadow.limit);
        bad |= (shadow.writer[at] >= shadow.limit) | !(shared | ((reader & ~u64{31}) == own));
    }
    return !bad;
}

template <int N>
void load(Warp& W, u32 mask, const u64* given, u32 site, u8* pack, u32 kind) {
    if (!mask) return;
    const Launch& launch = *W.launch;
    if (kind == PLAIN) W.touched = W.clock;
    Lanes lanes;
    u64 translated[LANES];
    const u64* address = given;
    if (!in_one_window<N>(launch, mask, address, lanes)) {
        each_lane(mask, [&](u32 l) { translated[l] = translate(launch, given[l]); });
        address = translated;
        const u32 wanted = mask;
        mask = refuse(W, mask, address, site, N, false);
        clear<N>(pack, wanted & ~mask);
        if (!mask) return;
        if (launch.counts) count_global(W, site, mask, N, sectors_of<N>(address, mask));
        each_lane(mask, [&](u32 l) {
            const u64 number = (address[l] >> WINDOW_SHIFT) - FIRST_WINDOW;
            Window& window = launch.window[number];
            const u64 offset = address[l] & OFFSET_MASK;
            if (launch.checks)
                watch_read(W, window, number, l, offset, N, site, address[l], kind);
            record_one(W, window, l, offset, N, READS);
            memcpy(pack + l * N, window.host + offset, N);
        });
        return;
    }
    Window& window = *lanes.window;
    record(W, window, mask, lanes.offset, N, READS);
    const bool dense = is_dense<N>(lanes.offset, mask);
    if (launch.counts)
        count_global(W, site, mask, N,
                     dense ? static_cast<u32>((((lanes.offset[0] & 31) + LANES * N) + 31) / 32)
                           : sectors_of<N>(lanes.offset, mask));
    if (launch.checks) {
        const bool quick = kind == PLAIN && N >> launch.granule_shift &&
                           (dense ? read_dense(W, window, lanes.number, lanes.offset[0], LANES * N)
                                  : read_scattered(W, window, lanes.number, lanes.offset, N));
        if (!quick)
            each_lane(mask, [&](u32 l) {
                watch_read(W, window, lanes.number, l, lanes.offset[l], N, site, address[l], kind);
            });
    }
    if (dense)
        memcpy(pack, window.host + lanes.offset[0], LANES * N);
    else
        each_lane(mask, [&](u32 l) { memcpy(pack + l * N, window.host + lanes.offset[l], N); });
}

template <int N>
void store(Warp& W, u32 mask, const u64* given, u32 site, const u8* pack, u32 kind) {
    if (!mask) return;
    const Launch& launch = *W.launch;
    Lanes lanes;
    u64 translated[LANES];
    const u64* address = given;
    W.worker->progress++;
    W.touched = W.clock;
    bool one = in_one_window<N>(launch, mask, address, lanes) && !(lanes.window->flags & 1);
    if (!one) {
        each_lane(mask, [&](u32 l) { translated[l] = translate(launch, given[l]); });
        address = translated;
        mask = refuse(W, mask, address, site, N, true);
        if (!mask) return;
    }
    const bool dense = one && is_dense<N>(lanes.offset, mask);
    if (launch.counts)
        count_global(W, site, mask, N,
                     dense ? static_cast<u32>((((lanes.offset[0] & 31) + LANES * N) + 31) / 32)
                           : sectors_of<N>(address, mask));
    if (dense) {
        const u64 offset = lanes.offset[0];
        Window& window = *lanes.window;
        record(W, window, mask, lanes.offset, N, WRITES);
        if (launch.checks) {
            const bool quick = kind == PLAIN && N >> launch.granule_shift &&
                               write_dense(W, window, lanes.number, offset, LANES * N, site);
            if (!quick)
                for (u32 l = 0; l < LANES; l++)
                    watch_write(W, window, lanes.number, l, offset + l * N, N, site, address[l],
                                kind, pack + l * N);
        }
        memcpy(window.host + offset, pack, LANES * N);
        return;
    }
    if (launch.checks) {
        const u32 kept = without_twins<N>(W, mask, address, site, pack, kind);
        each_lane(kept, [&](u32 l) {
            const u64 number = (address[l] >> WINDOW_SHIFT) - FIRST_WINDOW;
            watch_write(W, launch.window[number], number, l, address[l] & OFFSET_MASK, N, site,
                        address[l], kind, pack + l * N);
        });
    }
    each_lane(mask, [&](u32 l) {
        const Window& window = launch.window[(address[l] >> WINDOW_SHIFT) - FIRST_WINDOW];
        record_one(W, window, l, address[l] & OFFSET_MASK, N, WRITES);
        memcpy(window.host + (address[l] & OFFSET_MASK), pack + l * N, N);
    });
}

}  // namespace

template <int N>
void load_global(Warp& W, u32 mask, const u64* address, u32 site, void* pack) {
    load<N>(W, mask, address, site, static_cast<u8*>(pack), PLAIN);
}

template <int N>
void store_global(Warp& W, u32 mask, const u64* address, u32 site, const void* pack) {
    store<N>(W, mask, address, site, static_cast<const u8*>(pack), PLAIN);
}

template <int N>
void load_global_strong(Warp& W, u32 mask, const u64* address, u32 site, void* pack) {
    load<N>(W, mask, address, site, static_cast<u8*>(pack), STRONG);
}

template <int N>
void store_global_strong(Warp& W, u32 mask, const u64* address, u32 site, const void* pack) {
    store<N>(W, mask, address, site, static_cast<const u8*>(pack), STRONG);
}

// The bytes of one lane of an atomic operation, watched; null where there are none.
u8* atomic_global(Warp& W, u32 lane, u64 address, u32 bytes, u32 site) {
    const Launch& launch = *W.launch;
    u64 at[LANES];
    at[lane] = translate(launch, address);
    if (!refuse(W, 1u << lane, at, site, bytes, true)) return nullptr;
    const u64 number = (at[lane] >> WINDOW_SHIFT) - FIRST_WINDOW, offset = at[lane] & OFFSET_MASK;
    Window& window = launch.window[number];
    if (launch.checks) {
        if (window.written) check_written(W, window, lane, offset, site, at[lane], bytes);
        watch_write(W, window, number, lane, offset, bytes, site, at[lane], ATOMIC, nullptr);
    }
    record_one(W, window, lane, offset, bytes, UPDATES);
    return window.host + offset;
}

// Where an asynchronous copy of `size` bytes reads the first of them from; they are read now.
const u8* source_of_copy(Warp& W, u32 lane, u64 address, u32 bytes, u32 size, u32 site) {
    const Launch& launch = *W.launch;
    u64 at[LANES];
    at[lane] = translate(launch, address);
    if (at[lane] & (size - 1) && window_of(launch, at[lane])) {
        fault(W, MISALIGNED, site, lane, at[lane], size);
        return nullptr;
    }
    if (!refuse(W, 1u << lane, at, site, bytes, false)) return nullptr;
    const u64 number = (at[lane] >> WINDOW_SHIFT) - FIRST_WINDOW, offset = at[lane] & OFFSET_MASK;
    Window& window = launch.window[number];
    if (launch.checks) watch_read(W, window, number, lane, offset, bytes, site, at[lane], PLAIN);
    record_one(W, window, lane, offset, bytes, READS);
    return window.host + offset;
}

void count_copy(Warp& W, u32 mask, const u64* address, u32 site, u32 bytes) {
    const u32 sectors = bytes == 16  ? sectors_of<16>(address, mask)
                        : bytes == 8 ? sectors_of<8>(address, mask)
                                     : sectors_of<4>(address, mask);
    count_global(W, site, mask, bytes, sectors);
}

void count_atomic(Warp& W, u32 mask, const u64* address, u32 site, u32 bytes) {
    count_global(W, site, mask, bytes, bytes == 8 ? sectors_of<8>(address, mask)
                                                  : sectors_of<4>(address, mask));
}

// The bytes of a window from an address to its end; null where there are none.
const u8* bytes_from(const Launch& launch, u64 address, u64& count) {
    const u64 at = translate(launch, address), offset = at & OFFSET_MASK;
    const Window* window = window_of(launch, at);
    if (!window || offset >= window->bytes) return nullptr;
    count = window->bytes - offset;
    return window->host + offset;
}

#define SIMT_EACH(N)                                                                       \
    template void load_global<N>(Warp&, u32, const u64*, u32, void*);                      \
    template void store_global<N>(Warp&, u32, const u64*, u32, const void*);               \
    template void load_global_strong<N>(Warp&, u32, const u64*, u32, void*);               \
    template void store_global_strong<N>(Warp&, u32, const u64*, u32, const void*);
SIMT_EACH(1) SIMT_EACH(2) SIMT_EACH(4) SIMT_EACH(8) SIMT_EACH(16) SIMT_EACH(32)
#undef SIMT_EACH
