// What every access has in common: where its lanes point, and what the hardware would move.
#pragma once

#include "shadow.h"

inline u32 first_lane(u32 mask) { return static_cast<u32>(__builtin_ctz(mask)); }
inline u32 lanes_in(u32 mask) { return static_cast<u32>(__builtin_popcount(mask)); }

template <class F>
inline void each_lane(u32 mask, F&& f) {
    for (u32 left = mask; left; left &= left - 1) f(first_lane(left));
}

// Addresses of the active lanes; the others repeat the first one's, so that loops need no mask.
template <class T>
inline const T* spread(const T* address, u32 mask, T* room) {
    if (mask == ALL) return address;
    const T first = address[first_lane(mask)];
    for (u32 l = 0; l < LANES; l++) room[l] = mask >> l & 1 ? address[l] : first;
    return room;
}

// Lane after lane, N bytes each, without a gap.
template <int N, class T>
inline bool is_dense(const T* address, u32 mask) {
    if (mask != ALL) return false;
    T other = 0;
    for (u32 l = 0; l < LANES; l++) other |= address[l] ^ static_cast<T>(address[0] + l * N);
    return !other;
}

// What a load gives in lanes that were refused: as nothing is there, zero.
template <int N>
inline void clear(u8* pack, u32 mask) {
    each_lane(mask, [&](u32 l) { memset(pack + l * N, 0, N); });
}

// Different 32-byte sectors that N bytes a lane touch (a lane's bytes are aligned to N).
template <int N>
u32 sectors_of(const u64* address, u32 mask) {
    u64 sector[LANES];
    u32 count = 0;
    if (mask == ALL) {
        u32 changes = 0, falls = 0;
        for (u32 l = 1; l < LANES; l++) {
            const u64 here = address[l] >> 5, last = address[l - 1] >> 5;
            changes += here != last;
            falls += here < last;
        }
        if (!falls) return changes + 1;
    }
    each_lane(mask, [&](u32 l) {
        const u64 here = address[l] >> 5;
        for (u32 i = count; i-- > 0;)
            if (sector[i] == here) return;
        sector[count++] = here;
    });
    return count;
}

// What lanes side by side would need of units of so many bytes, but no more than was needed: lanes
// that ask for the same need less than that.
inline u32 ideal_of(u32 lanes, u32 bytes, u32 unit, u32 needed) {
    const u32 apart = (lanes * bytes + unit - 1) / unit;
    return apart < needed ? apart : needed;
}

inline void count_global(Warp& W, u32 site, u32 mask, u32 bytes, u32 sectors) {
    SiteCount& count = W.worker->site[site];
    const u32 lanes = lanes_in(mask);
    count.requests++;
    count.lanes += lanes;
    count.sectors += sectors;
    count.ideal_sectors += ideal_of(lanes, bytes, 32, sectors);
    count.bytes += lanes * bytes;
}

// Whether each lane's address is that of lane ^ STEP, where both take part.
template <int STEP>
bool pairs_up(const u32* address, u32 mask) {
    u32 apart = 0;
    for (u32 l = 0; l < LANES; l++) {
        const u32 both = mask >> l & mask >> (l ^ STEP) & 1;
        apart |= (address[l] ^ address[l ^ STEP]) & (0u - both);
    }
    return !apart;
}

// Passes that shared memory needs: in each the 32 banks of 4 bytes give one word each, to all who
// ask for it. 8-byte accesses go half a warp at a time, 16-byte ones a quarter. Loads go two such
// groups at a time where neighbours (lane ^ 1, or lane ^ 2) want the same. As an H100 counts them:
// benchmarks/simt_counts.py.
template <int N, bool LOAD>
u32 wavefronts_of(const u32* address, u32 mask) {
    u32 group = N <= 4 ? 32 : 128 / N;
    if (LOAD && N > 4 && (pairs_up<1>(address, mask) || pairs_up<2>(address, mask))) group *= 2;
    u32 total = 0;
    for (u32 begin = 0; begin < LANES; begin += group) {
        const u32 part = mask & (group == 32 ? ALL : ((1u << (group & 31)) - 1) << begin);
        if (!part) continue;
        // Without a clash, whoever writes a bank's word last finds that of all others there.
        u32 word[32], clashes = 0;
        for (u32 l = begin; l < begin + group; l++)
            for (u32 k = 0; k < (N + 3) / 4; k++)
                if (part >> l & 1) word[((address[l] >> 2) + k) & 31] = (address[l] >> 2) + k;
        for (u32 l = begin; l < begin + group; l++)
            for (u32 k = 0; k < (N + 3) / 4; k++)
                if (part >> l & 1)
                    clashes |= word[((address[l] >> 2) + k) & 31] ^ ((address[l] >> 2) + k);
        if (!clashes) {
            total++;
            continue;
        }
        u32 seen[32][LANES * ((N + 3) / 4) / 1], depth[32] = {}, most = 0;
        each_lane(part, [&](u32 l) {
            for (u32 k = 0; k < (N + 3) / 4; k++) {
                const u32 w = (address[l] >> 2) + k, bank = w & 31;
                u32 i = 0;
                while (i < depth[bank] && seen[bank][i] != w) i++;
                if (i == depth[bank]) seen[bank][depth[bank]++] = w;
                most = depth[bank] > most ? depth[bank] : most;
            }
        });
        total += most;
    }
    return total;
}

inline void count_shared(Warp& W, u32 site, u32 mask, u32 bytes, u32 wavefronts) {
    SiteCount& count = W.worker->site[site];
    const u32 lanes = lanes_in(mask);
    count.requests++;
    count.lanes += lanes;
    count.wavefronts += wavefronts;
    count.ideal_wavefronts += ideal_of(lanes, bytes, 128, wavefronts);
    count.bytes += lanes * bytes;
}

inline u64 generic(Warp&, u64 address) { return address; }
inline u64 generic(Warp& W, u32 address) { return shared_to_generic(W, address); }

// Lanes of one plain store that repeat an earlier lane's address with its value: one write is
// enough. Those with another value are at fault: which of them stays is not defined. (Replicas of
// a Triton program are not: shadow.h.)
template <int N, class T>
u32 without_twins(Warp& W, u32 mask, const T* address, u32 site, const u8* pack, u32 kind) {
    if (kind != PLAIN) return mask;
    bool rising = true;
    u64 last = 0;
    bool any = false;
    each_lane(mask, [&](u32 l) {
        if (any && static_cast<u64>(address[l]) < last + N) rising = false;
        last = static_cast<u64>(address[l]);
        any = true;
    });
    if (rising) return mask;
    const bool replicas = sizeof(T) == sizeof(u32) && have_replicas(W);
    u32 kept = mask;
    each_lane(mask, [&](u32 l) {
        for (u32 j = 0; j < l; j++) {
            if (!(kept >> j & 1) || address[j] != address[l]) continue;
            if (!replicas && memcmp(pack + j * N, pack + l * N, N))
                fault(W, RACE_IN_STORE, site, l, generic(W, address[l]), N, W.index * LANES + j);
            kept &= ~(1u << l);
            return;
        }
    });
    return kept;
}
