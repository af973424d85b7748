// Exchanges between the lanes of a warp.
#pragma once

#include "memory.h"

void shuffle(Warp& W, u32 mask, u32 mode, u32* to, u32* inside, const u32* value, const u32* other,
             const u32* clamp, u32 site);
void match_lanes(Warp& W, u32 mask, u32 every, u32* to, u32* flag, const u32* value,
                 const u32* members);
void match_lanes(Warp& W, u32 mask, u32 every, u32* to, u32* flag, const u64* value,
                 const u32* members);
void reduce_lanes(Warp& W, u32 mask, u32 operation, u32 is_signed, u32* to, const u32* value,
                  const u32* members);

inline u32 any_of(u32 mask, const u32* members) {
    u32 all = 0;
    for (u32 l = 0; l < LANES; l++) all |= mask >> l & 1 ? members[l] : 0;
    return all;
}

template <class T>
SIMT_INLINE T read_parameter(const u8* at) {
    T value;
    memcpy(&value, at, sizeof value);
    return value;
}
