// Exchanges between the lanes of a warp.
#include "access.h"
#include "lanes.h"

// shfl.sync, by the pseudocode of the PTX ISA: `clamp` holds the segment mask and the bound.
void shuffle(Warp& W, u32 mask, u32 mode, u32* to, u32* inside, const u32* value, const u32* other,
             const u32* clamp, u32 site) {
    alignas(64) u32 result[LANES], valid[LANES], from[LANES];
    if (mask == ALL && mode == 2 && !inside) {  // the exchanges of a reduction
        u32 other_than = 0;
        for (u32 l = 0; l < LANES; l++) other_than |= (other[l] ^ other[0]) | (clamp[l] ^ 31);
        if (!other_than && other[0] < LANES) {
            for (u32 l = 0; l < LANES; l++) result[l] = value[l ^ other[0]];
            memcpy(to, result, sizeof result);
            return;
        }
    }
    for (u32 l = 0; l < LANES; l++) {
        const s32 lane = static_cast<s32>(l), by = static_cast<s32>(other[l] & 31);
        const u32 bound = clamp[l] & 31, segment = clamp[l] >> 8 & 31;
        const s32 most = static_cast<s32>((l & segment) | (bound & ~segment));
        const s32 least = static_cast<s32>(l & segment);
        s32 j = lane;
        bool in = true;
        if (mode == 0) {
            j = lane - by;
            in = j >= most;
        } else if (mode == 1) {
            j = lane + by;
            in = j <= most;
        } else if (mode == 2) {
            j = lane ^ by;
            in = j <= most;
        } else {
            j = least | (by & static_cast<s32>(~segment));
            in = j <= most;
        }
        from[l] = static_cast<u32>(in ? j : lane);
        valid[l] = in;
        result[l] = value[from[l]];
    }
    each_lane(mask, [&](u32 l) {
        if (!(mask >> from[l] & 1)) fault(W, LANE_MISSING, site, l, from[l], 1, 1u << from[l]);
        to[l] = result[l];
        if (inside) inside[l] = valid[l];
    });
}

namespace {

template <class T>
void match_all(u32 mask, u32 every, u32* to, u32* flag, const T* value, const u32* members) {
    u32 found[LANES], same[LANES];
    each_lane(mask, [&](u32 l) {
        const u32 group = members[l] & mask;
        u32 equal = 0;
        each_lane(group, [&](u32 k) { equal |= static_cast<u32>(value[k] == value[l]) << k; });
        same[l] = equal == group;
        found[l] = !every ? equal : same[l] ? group : 0;
    });
    each_lane(mask, [&](u32 l) {
        to[l] = found[l];
        if (flag) flag[l] = same[l];
    });
}

}  // namespace

void match_lanes(Warp&, u32 mask, u32 every, u32* to, u32* flag, const u32* value,
                 const u32* members) {
    match_all(mask, every, to, flag, value, members);
}

void match_lanes(Warp&, u32 mask, u32 every, u32* to, u32* flag, const u64* value,
                 const u32* members) {
    match_all(mask, every, to, flag, value, members);
}

void reduce_lanes(Warp&, u32 mask, u32 operation, u32 is_signed, u32* to, const u32* value,
                  const u32* members) {
    u32 result[LANES];
    each_lane(mask, [&](u32 l) {
        const u32 group = members[l] & mask;
        u32 total = value[first_lane(group)];
        each_lane(group & (group - 1), [&](u32 k) {
            const u32 v = value[k];
            const bool less = is_signed ? static_cast<s32>(v) < static_cast<s32>(total) : v < total;
            switch (operation) {
                case ATOM_ADD: total += v; break;
                case ATOM_MIN: total = less ? v : total; break;
                case ATOM_MAX: total = less ? total : v; break;
                case ATOM_AND: total &= v; break;
                case ATOM_OR: total |= v; break;
                case ATOM_XOR: total ^= v; break;
            }
        });
        result[l] = total;
    });
    each_lane(mask, [&](u32 l) { to[l] = result[l]; });
}
