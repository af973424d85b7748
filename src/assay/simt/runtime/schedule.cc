// Lanes that part ways and meet again.
//
// Each split is a place and a mask. The split whose block lies deepest in the tree of
// post-dominators goes first: whatever lies below a block there must come through it, so that
// lanes meet again exactly where they can. Where a split has spun through its quota of backward
// branches, another gets its turn whatever its depth: a lock holder must make progress while the
// other lanes of its warp spin.
#include "access.h"
#include "sync.h"

namespace {

bool is_deeper(const Launch& launch, u32 pc, u32 than) {
    const u32 a = launch.depth[pc], b = launch.depth[than];
    return a != b ? a > b : pc < than;
}

u32 take(Warp& W, u32 index) {
    const Split split = W.split[index];
    W.split[index] = W.split[--W.splits];
    set_mask(W, split.mask);
    W.passed = split.passed;
    return split.pc;
}

// The deepest split that is ready, or OUT.
u32 deepest(const Warp& W) {
    u32 best = OUT;
    for (u32 i = 0; i < W.splits; i++)
        if (W.split[i].state == READY &&
            (best == OUT || is_deeper(*W.launch, W.split[i].pc, W.split[best].pc)))
            best = i;
    return best;
}

// Nobody is ready. Lanes that wait for others in vain go on, and that is a fault; lanes that wait
// at one barrier are one again; at several, they never meet.
u32 stuck(Warp& W) {
    for (u32 i = 0; i < W.splits; i++)
        if (met(W, W.split[i].members, 0)) return take(W, deepest(W));  // the others have left
    for (u32 i = 0; i < W.splits; i++)
        if (W.split[i].state == AT_WARP_SYNC) {
            W.split[i].passed = IN_VAIN;
            return take(W, i);
        }
    u32 mask = 0;
    const u32 pc = W.split[0].pc;
    for (u32 i = 0; i < W.splits; i++) {
        if (W.split[i].pc != pc) {
            fault(W, DIVERGENT_BARRIER, ALL, first_lane(W.split[i].mask), W.split[i].pc, 0, pc);
            W.launch->stopped = 1;
            W.state = WAITING;
            return OUT;
        }
        mask |= W.split[i].mask;
    }
    W.splits = 0;
    set_mask(W, mask);
    return pc;
}

}  // namespace

u32 next_split(Warp& W) {
    W.free_run = 0;
    if (!W.splits) {
        W.state = DONE;
        return OUT;
    }
    const u32 best = deepest(W);
    return best == OUT ? stuck(W) : take(W, best);
}

u32 diverge(Warp& W, u32 taken, u32 to, u32 other) {
    const u32 rest = W.mask & ~taken;
    if (!rest) return to;
    if (!taken) return other;
    const bool first = is_deeper(*W.launch, to, other);
    W.split[W.splits++] = {first ? other : to, first ? rest : taken, READY, 0, 0};
    set_mask(W, first ? taken : rest);
    return first ? to : other;
}

u32 branch_table(Warp& W, const u32* index, const u32* to, u32 count) {
    for (u32 left = W.mask; left;) {
        const u32 lead = first_lane(left), at = index[lead] < count ? index[lead] : count - 1;
        u32 same = 0;
        each_lane(left, [&](u32 l) {
            const u32 own = index[l] < count ? index[l] : count - 1;
            if (to[own] == to[at]) same |= 1u << l;
        });
        W.split[W.splits++] = {to[at], same, READY, 0, 0};
        left &= ~same;
    }
    return next_split(W);
}

u32 arrive(Warp& W, u32 pc) {
    u32 mask = W.mask;
    for (u32 i = 0; i < W.splits;) {
        const Split& split = W.split[i];
        if (split.pc == pc && !split.passed) {
            mask |= split.mask;
            W.split[i] = W.split[--W.splits];
        } else {
            i++;
        }
    }
    if (mask != W.mask) {
        set_mask(W, mask);
        W.free_run = 0;
    }
    if (!W.splits || W.free_run) return pc;
    const u32 best = deepest(W);
    if (best == OUT || !is_deeper(*W.launch, W.split[best].pc, pc)) return pc;
    if (W.launch->depth[W.split[best].pc] == W.launch->depth[pc]) return pc;
    W.split[W.splits++] = {pc, W.mask, READY, 0, 0};
    return take(W, best);
}

u32 leave(Warp& W, u32 lanes) {
    W.alive &= ~lanes;
    set_mask(W, W.mask & ~lanes);
    W.worker->progress++;
    return W.mask ? 0 : next_split(W);
}

u32 spun(Warp& W, u32 pc) {
    W.steps += W.spins;
    W.spins = 0;
    W.state = YIELDED;
    W.pc = pc;
    if (W.steps > W.launch->step_limit) {
        fault(W, STEP_LIMIT, ALL, first_lane(W.mask), pc, 0, W.steps);
        W.launch->stopped = 1;
        return OUT;
    }
    for (u32 i = 0; i < W.splits; i++)
        if (W.split[i].state == READY) {
            const Split own = {pc, W.mask, READY, 0, 0};
            const Split next = W.split[i];
            for (u32 k = i + 1; k < W.splits; k++) W.split[k - 1] = W.split[k];
            W.split[W.splits - 1] = own;
            set_mask(W, next.mask);
            W.passed = next.passed;
            W.pc = next.pc;
            W.free_run = 1;
            break;
        }
    return OUT;
}

void trap(Warp& W, u32 site, u32 kind, u32 mask) {
    if (!mask) return;
    fault(W, kind, site, first_lane(mask), 0, 0);
    W.launch->stopped = 1;
}
