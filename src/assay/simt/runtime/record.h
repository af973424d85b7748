// Who reads and writes each granule of a window, where a launch is recorded.
#pragma once

#include "access.h"

enum Use : u32 { READS, WRITES, UPDATES };

inline void record_lane(const Warp& W, Cell* cells, u32 lane, u64 offset, u32 bytes, Use use) {
    const u32 block = static_cast<u32>(W.block->linear) + 1;
    const u16 thread = static_cast<u16>(W.index * LANES + lane);
    const u32 shift = W.launch->granule_shift;
    for (u64 i = offset >> shift; i <= (offset + bytes - 1) >> shift; i++) {
        Cell& cell = cells[i];
        if (use == READS) {
            cell.reads++;
            cell.readers += cell.last_reader != block;
            if (!cell.first_reader) cell.first_reader = block, cell.first_reading = thread;
            cell.last_reader = block, cell.last_reading = thread;
        } else {
            (use == WRITES ? cell.writes : cell.atomics)++;
            cell.writers += cell.last_writer != block;
            if (!cell.first_writer) cell.first_writer = block, cell.first_writing = thread;
            cell.last_writer = block, cell.last_writing = thread;
        }
    }
}

// All lanes of a warp in one window; a window of which nothing is recorded costs a test.
inline void record(const Warp& W, const Window& window, u32 mask, const u64* offset, u32 bytes,
                   Use use) {
    if (!window.record) return;
    each_lane(mask, [&](u32 l) { record_lane(W, window.record, l, offset[l], bytes, use); });
}

inline void record_one(const Warp& W, const Window& window, u32 lane, u64 offset, u32 bytes,
                       Use use) {
    if (window.record) record_lane(W, window.record, lane, offset, bytes, use);
}
