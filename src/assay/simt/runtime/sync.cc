// Barriers, warp-wide synchronisation and fences: what they wait for, and what they order.
//
// A fence of a block gets a tick, and releases all that the block did before. A strong or atomic
// access that sees what a block wrote after a fence has seen that tick, and acquires it with a fence
// of its own, as in the PTX memory model: without one, a plain read may be served by a line that
// the L1 cache has kept. Ticks are one sequence, so having acquired one counts as having acquired all
// before it: this may miss a race, and makes none up.
#include "access.h"
#include "sync.h"

namespace {

constexpr u32 WITHOUT_COUNT = 0;

Block* block_of(const Warp& W, u64 entry) {
    Block* blocks = W.worker->all_blocks;
    return blocks ? &blocks[(entry >> 32) - W.launch->first_block] : nullptr;
}

u32* known_of(Warp& W) {
    if (!W.known) W.known = static_cast<u32*>(__builtin_calloc(MAX_WARPS, sizeof(u32)));
    return W.known;
}

template <class T>
void keep_later(T& clock, T other) {
    clock = other > clock ? other : clock;
}

u32 live_warps(const Block& block) {
    u32 mask = 0;
    for (u32 w = 0; w < block.warps; w++)
        if (block.warp[w].state != DONE) mask |= 1u << w;
    return mask;
}

u32 clock_after(Block& block) {
    if (block.clock < CLOCK_LAST) block.clock++;
    return block.clock;
}

// All warps of the block have met: everything before is below their floor.
void join_all(Block& block) {
    const u32 floor = block.clock, clock = clock_after(block);
    if (block.warp[0].launch->communicates) block.floors.push(floor);
    u64 acquired = 0, seen = 0;
    for (u32 w = 0; w < block.warps; w++) {
        keep_later(acquired, block.warp[w].acquired);
        keep_later(seen, block.warp[w].seen);
    }
    for (u32 w = 0; w < block.warps; w++) {
        Warp& W = block.warp[w];
        W.floor = floor;
        W.clock = clock;
        W.acquired = acquired;
        W.seen = seen;
        if (W.known) memset(W.known, 0, MAX_WARPS * sizeof(u32));
    }
}

// Some warps have met: each knows what the others knew and did. who: all that arrived.
void join_some(Block& block, u32 waiting, u32 who) {
    u32 joined[MAX_WARPS] = {};
    u64 acquired = 0, seen = 0;
    each_lane(who, [&](u32 w) {
        Warp& W = block.warp[w];
        keep_later(joined[w], W.clock);
        keep_later(acquired, W.acquired);
        keep_later(seen, W.seen);
        if (W.known)
            for (u32 v = 0; v < MAX_WARPS; v++) keep_later(joined[v], W.known[v]);
    });
    const u32 clock = clock_after(block);
    each_lane(who, [&](u32 w) {
        Warp& W = block.warp[w];
        if (waiting >> w & 1) {
            memcpy(known_of(W), joined, sizeof joined);
            W.acquired = acquired;
            W.seen = seen;
        }
        W.clock = clock;
    });
}

void let_through(Block& block, NamedBarrier& barrier) {
    const u32 waiting = barrier.warps, who = barrier.who;
    if ((waiting & live_warps(block)) == live_warps(block) && waiting == who)
        join_all(block);
    else
        join_some(block, waiting, who);
    each_lane(waiting, [&](u32 w) {
        Warp& W = block.warp[w];
        W.state = RUNNING;
        W.passed = 1;
        const u32 votes[] = {barrier.red_count, barrier.red_and, barrier.red_or};
        W.vote = votes[W.vote];
    });
    barrier = {};
    if (block.warps) block.warp[0].worker->progress++;
}

void add_to(Warp& W, NamedBarrier& barrier, u32 count, u32 votes, u32 mask) {
    if (!barrier.who) barrier.red_and = 1;
    barrier.expected = count;
    barrier.arrived += LANES;
    barrier.who |= 1u << W.index;
    barrier.red_count += lanes_in(votes);
    barrier.red_and &= votes == mask;
    barrier.red_or |= votes != 0;
}

}  // namespace

// After two million clocks there are no more: from then on all that a block does counts as in order,
// so that races within it are missed, and none are made up.
void next_clock(Warp& W) {
    Block& block = *W.block;
    W.clock = clock_after(block);
    if (block.clock < CLOCK_LAST) return;
    for (u32 w = 0; w < block.warps; w++) block.warp[w].clock = block.warp[w].floor = CLOCK_LAST;
}

// Clocks are few, so one that left no trace is used again.
void sync_warp(Warp& W) {
    if (W.touched == W.clock) next_clock(W);
}

void fence(Warp& W, u32 scope) {
    const bool used = W.touched == W.clock;
    if (scope && W.launch->communicates) {
        acquire_seen(W);
        Block& block = *W.block;
        if (!block.releases) block.releases = new List<Release>[block.warps];
        List<Release>& own = block.releases[W.index];
        const Release made = {used ? W.clock : W.clock - 1, W.floor, W.worker->tick + 1};
        const Release* last = own.count ? own.items + own.count - 1 : nullptr;
        if (!last || last->clock < made.clock || last->floor < made.floor) {
            own.push(made);
            W.worker->tick++;
        }
    }
    if (used) next_clock(W);
}

void try_complete(Block& block) {
    const u32 live = live_warps(block);
    for (NamedBarrier& barrier : block.barrier) {
        if (!barrier.who) continue;
        const bool complete = barrier.expected == WITHOUT_COUNT
                                  ? (barrier.who & live) == live
                                  : barrier.arrived >= barrier.expected;
        if (complete) let_through(block, barrier);
    }
}

// The lanes of this warp meet first. Gives the place to go on with, or OUT.
//
// Lanes that are already where all ways on from the barrier lead have gone round it: a barrier in
// divergent code. (Those that are there only to end have left, as a barrier lets them.)
u32 gather(Warp& W, u32 pc, u32 site) {
    if (W.mask == W.alive) return pc;
    const Launch& launch = *W.launch;
    constexpr u32 ENDS = 1u << 31;
    for (u32 i = 0; i < W.splits; i++) {
        if (W.split[i].state != READY || launch.above[W.split[i].pc] & ENDS) continue;
        u32 on = pc;
        for (u32 d = launch.depth[pc]; d > launch.depth[W.split[i].pc]; d--)
            on = launch.above[on] & ~ENDS;
        if (on == W.split[i].pc && on != pc) {
            fault(W, DIVERGENT_BARRIER, site, first_lane(W.mask), W.split[i].mask, 0);
            W.launch->stopped = 1;
            return OUT;
        }
    }
    W.split[W.splits++] = {pc, W.mask, AT_BARRIER, 0, 0};
    return next_split(W);
}

// Whether the warp may go on at once; else it waits.
bool wait_barrier(Warp& W, u32 pc, u32 site, u32 id, u32 count, u32 votes, u32 operation) {
    Block& block = *W.block;
    if (id > 15 || count % LANES || count > block.warps * LANES) {
        fault(W, BAD_BARRIER, site, first_lane(W.mask), id, count);
        W.launch->stopped = 1;
        return false;
    }
    W.pc = pc;
    W.state = WAITING;
    W.barrier_id = id;
    W.barrier_count = count;
    W.barrier_site = site;
    W.vote = operation;
    NamedBarrier& barrier = block.barrier[id];
    each_lane(barrier.warps, [&](u32 w) {
        const Warp& other = block.warp[w];
        if (!count && !other.barrier_count && other.barrier_site != site)
            fault(W, DIVERGENT_BARRIER, site, first_lane(W.mask), id, 0, w, other.barrier_site);
    });
    add_to(W, barrier, count, votes, W.mask);
    barrier.warps |= 1u << W.index;
    try_complete(block);
    return W.state != WAITING;
}

void arrive_barrier(Warp& W, u32 site, u32 id, u32 count, u32 mask) {
    if (!mask) return;
    if (id > 15 || !count || count % LANES || count > W.block->warps * LANES) {
        fault(W, BAD_BARRIER, site, first_lane(mask), id, count);
        return;
    }
    add_to(W, W.block->barrier[id], count, 0, mask);
    try_complete(*W.block);
    next_clock(W);
}

// Whether all lanes that a bar.warp.sync names wait at one, with those of `here`. Then they go on.
bool met(Warp& W, u32 members, u32 here) {
    u32 there = here;
    for (u32 i = 0; i < W.splits; i++)
        if (W.split[i].members == members) there |= W.split[i].mask;
    if (!members || members & W.alive & ~there) return false;
    for (u32 i = 0; i < W.splits; i++)
        if (W.split[i].members == members) {
            W.split[i].state = READY;
            W.split[i].passed = 1;
            W.split[i].members = 0;
        }
    return true;
}

// A lane must be among those that its own `.sync` instruction names.
void check_members(Warp& W, u32 site, const u32* members) {
    u32 own = 0;
    for (u32 l = 0; l < LANES; l++) own |= (members[l] >> l & 1u) << l;
    const u32 outside = W.mask & ~own;
    if (outside)
        fault(W, LANE_MISSING, site, first_lane(outside), members[first_lane(outside)], 0, outside);
}

// For the lanes that a `.sync` instruction names: those still on their way are run first.
u32 wait_lanes(Warp& W, u32 pc, u32 site, u32 members, u32 anywhere) {
    const u32 missing = members & W.alive & ~W.mask;
    if (W.passed) {
        if (W.passed == IN_VAIN && missing)
            fault(W, LANE_MISSING, site, first_lane(W.mask), members, 0, missing);
        W.passed = 0;
        return pc;
    }
    if (!missing) return pc;
    if (anywhere && met(W, members, W.mask)) return pc;
    W.split[W.splits++] = {pc, W.mask, AT_WARP_SYNC, 0, anywhere ? members : 0};
    return next_split(W);
}

namespace {

// The first of rising items that f does not hold for; their number where it holds for all.
template <class T, class F>
u32 first_without(const List<T>& items, F&& f) {
    u32 low = 0, high = items.count;
    while (low < high) {
        const u32 middle = (low + high) / 2;
        if (f(items.items[middle]))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The floor of a warp of this block while its clock was this.
u32 floor_at(const Block& block, u32 clock) {
    const u32 i = first_without(block.floors, [&](u32 floor) { return floor < clock; });
    return i ? block.floors.items[i - 1] : 0;
}

}  // namespace

// A strong access of this warp has seen one of another block: all that fences before that one
// released is known from now on.
void acquire_block(Warp& W, u64 entry) {
    const Block* from = block_of(W, entry);
    if (!from) return;
    const u32 warp = thread_of(entry) >> 5, clock = clock_of(entry), floor = floor_at(*from, clock);
    u64 tick = from->seen;  // what it passes on without having released it itself
    for (u32 w = 0; from->releases && w < from->warps; w++) {
        const List<Release>& own = from->releases[w];
        const u32 before = first_without(own, [&](const Release& release) {
            return w == warp ? release.clock < clock || clock == CLOCK_LAST
                             : release.clock <= floor;
        });
        if (before && own.items[before - 1].tick > tick) tick = own.items[before - 1].tick;
    }
    keep_later(W.seen, tick);
    keep_later(W.block->seen, tick);
}

// The same between warps of a block. What that warp had learned of others comes with it.
void acquire_seen(Warp& W) { keep_later(W.acquired, W.seen); }

void acquire_warp(Warp& W, u64 entry) {
    const Warp& from = W.block->warp[thread_of(entry) >> 5];
    u32* known = known_of(W);
    keep_later(known[from.index], clock_of(entry));
    if (from.known)
        for (u32 w = 0; w < MAX_WARPS; w++) keep_later(known[w], from.known[w]);
    keep_later(W.acquired, from.acquired);
    keep_later(W.seen, from.seen);
}

// Whether this warp has acquired the first fence that came after what has this entry.
bool ordered_blocks(const Warp& W, u64 entry, u64 tick) {
    if (!W.launch->communicates) return false;
    const Block* from = block_of(W, entry);
    if (!from || !from->releases) return false;
    const u32 warp = thread_of(entry) >> 5, clock = clock_of(entry);
    for (u32 w = 0; w < from->warps; w++) {
        const List<Release>& own = from->releases[w];
        const u32 after = first_without(own, [&](const Release& release) {
            return (w == warp ? release.clock : release.floor) < clock;
        });
        if (after < own.count && tick >= own.items[after].tick) return true;
    }
    return false;
}

void not_converged(Warp& W, u32 site, u32 mask) {
    fault(W, LANE_MISSING, site, mask ? first_lane(mask) : 0, ALL, 0, ~mask);
}
