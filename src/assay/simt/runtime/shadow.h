// Who touched a granule of memory last, and whether that happened before what a warp does now.
//
// An entry is a word: high half the site (shared memory) or the block's number (global), then 21
// bits of clock, a flag, 10 bits of thread. Clocks come from one counter of the block. A warp's
// clock moves on whenever something orders it (barrier, .sync operation, fence), and all that
// has a clock up to the warp's floor happened before it, because a barrier of the whole block came
// between. So the test does not depend on the order in which warps are run.
#pragma once

#include "memory.h"

constexpr u32 CLOCK_SHIFT = 11;
constexpr u32 FLAG = 1u << 10;  // reader: several readers; writer: an atomic operation
constexpr u32 THREAD_MASK = FLAG - 1;
constexpr u32 CLOCK_MAX = (1u << 21) - 1;  // bytes in flight; readers of several blocks
constexpr u32 CLOCK_LAST = CLOCK_MAX - 1;

inline u32 clock_of(u64 entry) { return static_cast<u32>(entry) >> CLOCK_SHIFT; }
inline u32 thread_of(u64 entry) { return static_cast<u32>(entry) & THREAD_MASK; }
inline u64 entry_of(u64 high, u32 clock, u32 thread) {
    return high << 32 | clock << CLOCK_SHIFT | thread;
}

// Whether an entry of the same block happened before what a lane of this warp does now.
inline bool ordered(const Warp& W, u32 lane, u64 entry) {
    const u32 clock = clock_of(entry), thread = thread_of(entry);
    if (clock <= W.floor) return true;
    if (thread >> 5 == W.index) return clock < W.clock || (thread & 31) == lane;
    return W.known && clock <= W.known[thread >> 5];
}

// The same for an entry of another block: by what this block has acquired (sync.cc).
// A read needs a fence after what it saw; a write that follows what it saw can't come before it.
bool ordered_blocks(const Warp& W, u64 entry, u64 tick);

// Whether threads that store to one word of shared memory by one instruction store one element, of
// which each has a replica. A Triton program shares out its elements, and shared memory, as its
// compiler likes: threads and warps that are too many repeat what others do. Their values are the
// same but for rounding (in a sum by shuffles, x * x + shuffled x * x becomes a fused multiply-add
// that rounds only the other lane's product), so any of them may stay.
inline bool have_replicas(const Warp& W) { return W.launch->one_program; }

enum AccessKind : u32 { PLAIN, ATOMIC, STRONG };

// Global memory of one window as this worker sees it.
struct GlobalShadow {
    static constexpr bool across_blocks = true;
    u64* writer;
    u64* reader;
    u32* site;   // of the last write
    u64 limit;   // entries below are of earlier launches
    u64 high;    // this block's number

    u64 wrote(u64 granule) const { return writer[granule]; }
    u64 read(u64 granule) const { return reader[granule]; }
    void note(u64 granule, u64 entry) { reader[granule] = entry; }
    bool fresh(u64 entry) const { return entry < limit; }
    bool same(u64 entry) const { return entry >> 32 == high; }
    bool before(const Warp& W, u32 lane, u64 entry, u64 tick) const {
        return same(entry) ? ordered(W, lane, entry) : ordered_blocks(W, entry, tick);
    }
};

// Shared memory of one block.
struct SharedShadow {
    static constexpr bool across_blocks = false;
    Traces traces;
    u64 high;    // the site

    u64 wrote(u64 granule) const {
        return entry_of(traces.writer_site[granule], 0, 0) | traces.writer[granule];
    }
    u64 read(u64 granule) const {
        return entry_of(traces.reader_site[granule], 0, 0) | traces.reader[granule];
    }
    void note(u64 granule, u64 entry) {
        traces.reader[granule] = static_cast<u32>(entry);
        traces.reader_site[granule] = static_cast<u32>(entry >> 32);
    }
    void write(u64 granule, u64 entry) {
        traces.writer[granule] = static_cast<u32>(entry);
        traces.writer_site[granule] = static_cast<u32>(entry >> 32);
    }
    bool fresh(u64 entry) const { return !static_cast<u32>(entry); }
    bool same(u64) const { return true; }
    bool before(const Warp& W, u32 lane, u64 entry, u64) const { return ordered(W, lane, entry); }
};

// What is wrong with a read of a granule: 0, RACE_WITH_WRITE, ATOMIC_RACE or IN_FLIGHT.
template <class Shadow>
u32 read_fault(const Warp& W, const Shadow& shadow, u64 granule, u32 lane, u32 kind) {
    const u64 entry = shadow.wrote(granule);
    if (shadow.fresh(entry)) return 0;
    if (clock_of(entry) == CLOCK_MAX) return IN_FLIGHT;
    if (shadow.before(W, lane, entry, W.acquired)) return 0;
    if (kind != PLAIN) return 0;  // a strong read may race by design; it then acquires
    if (Shadow::across_blocks && W.launch->one_program && shadow.same(entry)) return 0;
    return entry & FLAG ? ATOMIC_RACE : RACE_WITH_WRITE;
}

template <class Shadow>
void note_read(const Warp& W, Shadow& shadow, u64 granule, u32 lane) {
    const u64 mine = entry_of(shadow.high, W.clock, W.index * LANES + lane);
    const u64 entry = shadow.read(granule);
    if (shadow.fresh(entry)) return shadow.note(granule, mine);
    const bool same_warp = shadow.same(entry) && thread_of(entry) >> 5 == W.index;
    if (entry & FLAG) {
        if (shadow.same(entry) && clock_of(entry) <= W.floor) shadow.note(granule, mine);
        return;
    }
    if (same_warp || shadow.before(W, lane, entry, W.acquired)) return shadow.note(granule, mine);
    const u64 several = shadow.same(entry) ? mine : entry_of(shadow.high, CLOCK_MAX, 0);
    shadow.note(granule, several | FLAG);
}

// What is wrong with a write: 0, RACE_WITH_WRITE, RACE_WITH_READ, ATOMIC_RACE, IN_FLIGHT.
template <class Shadow>
u32 write_fault(const Warp& W, const Shadow& shadow, u64 granule, u32 lane, u32 kind, u64& other) {
    const u64 writer = shadow.wrote(granule);
    if (!shadow.fresh(writer)) {
        if (clock_of(writer) == CLOCK_MAX) {
            other = writer;
            return IN_FLIGHT;
        }
        const bool both = kind != PLAIN && writer & FLAG;
        const bool replica =
            !Shadow::across_blocks && have_replicas(W) && writer >> 32 == shadow.high;
        if (!both && !replica && !shadow.before(W, lane, writer, W.seen)) {
            other = writer;
            return writer & FLAG || kind == ATOMIC ? ATOMIC_RACE : RACE_WITH_WRITE;
        }
    }
    const u64 reader = shadow.read(granule);
    if (shadow.fresh(reader)) return 0;
    const bool same = shadow.same(reader);
    // (Readers of several blocks have the latest one's number, and the largest clock.)
    const bool own = same && clock_of(reader) != CLOCK_MAX;
    if (Shadow::across_blocks && W.launch->one_program && own) return 0;
    if (reader & FLAG) {
        // Several unordered readers: which of them are known to this warp cannot be told where
        // only some warps meet, or where blocks wait for one another; then nothing is said.
        if (same && clock_of(reader) <= W.floor) return 0;
        if (W.known || (Shadow::across_blocks && W.launch->communicates) || kind != PLAIN) return 0;
        other = reader;
        return RACE_WITH_READ;
    }
    if (shadow.before(W, lane, reader, W.seen) || kind == STRONG) return 0;
    other = reader;
    return kind == ATOMIC ? ATOMIC_RACE : RACE_WITH_READ;
}
