// One launch: blocks of warps, run to their end, on one or several cores.
//
// Blocks are run one by one, each warp in turn until it waits or has spun through its quota. Where
// none of them gets on, the next blocks are started beside them: they may be what is waited for.
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "access.h"
#include "sync.h"

namespace {

// IEEE arithmetic on this thread: the process may have asked for denormals to be flushed.
struct Arithmetic {
#if defined(__SSE__)
    static constexpr u32 PLAIN_IEEE = 0x1F80;
    u32 kept = _mm_getcsr();
    Arithmetic() { _mm_setcsr(PLAIN_IEEE); }
    ~Arithmetic() { _mm_setcsr(kept); }
#endif
};

u8* allocate(u64 bytes) {
    const u64 whole = (bytes + 127) / 64 * 64;
    return static_cast<u8*>(aligned_alloc(64, whole));
}

// Which threads of its block a warp's lanes are, the same in every block.
void set_threads(Warp& W, u32 index, const Launch& launch) {
    const u32 total = launch.threads[0] * launch.threads[1] * launch.threads[2];
    W.index = index;
    W.all = 0;
    for (u32 l = 0; l < LANES; l++) {
        const u32 t = index * LANES + l;
        W.all |= static_cast<u32>(t < total) << l;
        W.tid[0][l] = t % launch.threads[0];
        W.tid[1][l] = t / launch.threads[0] % launch.threads[1];
        W.tid[2][l] = t / launch.threads[0] / launch.threads[1];
    }
}

struct Memory {  // of a resident block, used by one block after the other
    Block* block = nullptr;
    std::vector<Warp> warps;
    u8* registers;
    u8* local;
    u8* shared;
    u32* traces;  // four of each granule
    u64 granules;

    explicit Memory(const Launch& launch) : warps(warps_of(launch)) {
        const u64 count = warps.size();
        registers = allocate(launch.register_bytes * count);
        memset(registers, 0, launch.register_bytes * count);
        local = allocate(launch.local_bytes * LANES * count);
        memset(local, 0xFF, launch.local_bytes * LANES * count);
        const u64 bytes = launch.static_shared + launch.dynamic_shared;
        granules = (bytes >> launch.shared_granule_shift) + LANES;
        shared = allocate(bytes + 64);
        traces = reinterpret_cast<u32*>(allocate(granules * 4 * sizeof(u32)));
        for (u32 w = 0; w < count; w++) set_threads(warps[w], w, launch);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
        for (Warp& W : warps) free(W.known);
        free(registers);
        free(local);
        free(shared);
        free(traces);
    }
    static u64 warps_of(const Launch& launch) {
        const u64 threads = u64{launch.threads[0]} * launch.threads[1] * launch.threads[2];
        return (threads + LANES - 1) / LANES;
    }
};

void start(Memory& memory, Block& block, Worker& worker, u64 linear) {
    Launch& launch = *worker.launch;
    memory.block = &block;
    block = Block{};
    block.linear = linear;
    block.id[0] = static_cast<u32>(linear % launch.grid[0]);
    block.id[1] = static_cast<u32>(linear / launch.grid[0] % launch.grid[1]);
    block.id[2] = static_cast<u32>(linear / launch.grid[0] / launch.grid[1]);
    block.number = launch.first_block + linear;
    block.warps = block.live = static_cast<u32>(memory.warps.size());
    block.clock = 1;
    block.shared = memory.shared;
    block.shared_bytes = launch.static_shared + launch.dynamic_shared;
    u32* const traces = memory.traces;
    const u64 each = memory.granules;
    block.traces = {traces, traces + each, traces + 2 * each, traces + 3 * each};
    block.warp = memory.warps.data();
    memset(memory.shared, 0xFF, block.shared_bytes);
    if (launch.checks) {
        memset(block.traces.writer, 0, each * sizeof(u32));
        memset(block.traces.reader, 0, each * sizeof(u32));
    }
    for (u32 w = 0; w < block.warps; w++) {
        Warp& W = memory.warps[w];
        W.passed = W.splits = W.pc = W.floor = W.free_run = W.spins = W.touched = 0;
        W.state = RUNNING;
        W.clock = 1;
        W.steps = W.acquired = W.seen = 0;
        W.copies.count = 0;
        memset(W.copies_committed, 0, sizeof W.copies_committed);
        if (W.known) memset(W.known, 0, MAX_WARPS * sizeof(u32));
        W.registers = memory.registers + launch.register_bytes * w;
        W.local = memory.local + launch.local_bytes * LANES * w;
        W.block = &block;
        W.launch = &launch;
        W.worker = &worker;
        W.alive = W.all;
        set_mask(W, W.all);
    }
}

u64 scramble(u64& state) {  // xorshift64
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

void permute(std::vector<u32>& order, u64& state) {
    for (u32 i = static_cast<u32>(order.size()); i > 1; i--)
        std::swap(order[i - 1], order[scramble(state) % i]);
}

void finish(Memory& memory) {
    Block& block = *memory.block;
    if (!block.warp[0].worker->launch->stopped)
        for (Warp& W : memory.warps)
            if (W.copies.count) {
                const AsyncCopy& copy = W.copies.items[0];
                fault(W, ASYNC_UNFINISHED, copy.site, copy.lane, copy.to, copy.bytes);
            }
    block.finished = 1;
}

// Runs each warp that can go on once. True while some warp of the block has not ended.
bool pass(Memory& memory, std::vector<u32>& order, u64& state) {
    Block& block = *memory.block;
    Launch& launch = *block.warp[0].launch;
    if (launch.order) permute(order, state);
    bool ran = false;
    for (const u32 w : order) {
        Warp& W = memory.warps[w];
        if (W.state == DONE || W.state == WAITING) continue;
        W.state = RUNNING;
        ran = true;
        launch.run(W);
        if (launch.stopped) return false;
        if (W.state == DONE) {
            block.live--;
            try_complete(block);
        }
    }
    if (!block.live) return false;
    if (!ran) {
        for (const u32 w : order)
            if (memory.warps[w].state == WAITING) {
                Warp& W = memory.warps[w];
                fault(W, DEADLOCK, W.barrier_site, first_lane(W.mask), W.barrier_id, 0);
                break;
            }
        launch.stopped = 1;
    }
    return ran;
}

std::vector<u32> ascending(u64 count) {
    std::vector<u32> order(count);
    for (u32 i = 0; i < count; i++) order[i] = i;
    return order;
}

// Whether what one core's blocks wrote, another's touched: cores keep shadows of their own.
bool cores_meet(const Launch& launch, const std::vector<Worker>& workers) {
    const u64 limit = launch.first_block << 32;
    for (u64 w = 0; w < launch.windows; w++) {
        const u64 granules = launch.window[w].bytes >> launch.granule_shift;
        for (const Worker& one : workers) {
            if (!one.wrote[w]) continue;
            for (const Worker& other : workers) {
                if (&one == &other) continue;
                u64 both = 0;
                const u64 *wrote = one.writer[w], *too = other.writer[w], *read = other.reader[w];
                for (u64 g = 0; g < granules; g++)
                    both |= (wrote[g] >= limit) & ((too[g] >= limit) | (read[g] >= limit));
                if (both) return true;
            }
        }
    }
    return false;
}

// A block that has been started and memory for it; where blocks look at each other's fences, the
// block itself is kept elsewhere, for as long as the launch.
struct Resident {
    Memory memory;
    Block own;

    explicit Resident(const Launch& launch) : memory(launch) {}
};

u64 mixed(u64 hash, const u8* from, u64 bytes) {
    for (u64 i = 0; i + 8 <= bytes; i += 8) {
        u64 word;
        memcpy(&word, from + i, 8);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
        hash ^= hash >> 29;
    }
    return hash;
}

// All that decides what the warps of a block do next, as long as memory stays as it is.
u64 state_of(const Memory& memory, u64 hash) {
    for (const Warp& W : memory.warps) {
        const u32 words[] = {W.pc, W.state, W.mask, W.alive, W.passed, W.splits};
        hash = mixed(hash, reinterpret_cast<const u8*>(words), sizeof words);
        hash = mixed(hash, reinterpret_cast<const u8*>(W.split), W.splits * sizeof(Split) / 8 * 8);
        if (W.state != DONE) hash = mixed(hash, W.registers, W.launch->register_bytes);
    }
    return hash;
}

// Finds out that warps go round in a circle, by Brent's method: their state is one that it was
// before, and no memory has changed in between. What they wait for never comes.
struct Circle {
    u64 kept = 0, passes = 0, next = 1;

    bool closed(u64 state) {
        if (passes && state == kept) return true;
        if (++passes == next) {
            kept = state;
            next *= 2;
        }
        return false;
    }
};

constexpr u64 FIRST_TOGETHER = 16;  // blocks that are started at once where they may wait
constexpr u64 IDLE_ROUNDS = 4;      // without a change in memory, before others are started
constexpr u32 SHORT_QUOTA = 64;
constexpr u64 LONG_IDLE = 64;       // where they need not wait for one another, as far as is known

// The blocks of one core: `first` and every `step` after it.
class Runner {
public:
    Runner(Worker& worker, u32 first, u32 step)
        : worker(worker), launch(*worker.launch), next(first), step(step), state(launch.order) {
        blocks = u64{launch.grid[0]} * launch.grid[1] * launch.grid[2];
        order = ascending(Memory::warps_of(launch));
        if (launch.order) {  // the same sequence on every core
            sequence = ascending(blocks);
            permute(sequence, state);
        }
        if (launch.communicates) {
            all.resize(blocks);
            worker.all_blocks = all.data();
        }
        most = step > 1 ? 1 : launch.max_resident;
    }

    void run() {
        add(launch.communicates ? FIRST_TOGETHER : 1);
        u64 idle = 0;
        Circle circle;
        while (busy && !launch.stopped) {
            const u64 seen = worker.progress;
            round();
            if (worker.progress != seen) {
                idle = 0;
                circle = Circle{};
                continue;
            }
            idle++;
            if (launch.communicates && idle < IDLE_ROUNDS) continue;
            const bool closed = circle.closed(now());
            if (resident.size() < most && next < blocks) {
                if (!launch.communicates && !closed && idle < LONG_IDLE) continue;
                if (closed) launch.quota = SHORT_QUOTA;  // they do wait for one another
                add(resident.size());
                idle = 0;
                circle = Circle{};
            } else if (closed) {
                give_up();
            }
        }
    }

private:
    Worker& worker;
    Launch& launch;
    u64 blocks, next, step, state, most, busy = 0;
    std::vector<u32> order, turn, sequence;
    std::vector<Block> all;
    std::vector<std::unique_ptr<Resident>> resident;

    void add(u64 count) {
        for (; count && next < blocks && resident.size() < most; count--) {
            resident.push_back(std::make_unique<Resident>(launch));
            begin(*resident.back());
            busy++;
        }
        turn = ascending(resident.size());
    }

    void begin(Resident& one) {
        const u64 linear = launch.order ? sequence[next] : next;
        start(one.memory, launch.communicates ? all[linear] : one.own, worker, linear);
        next += step;
    }

    // Each warp that can go on once.
    void round() {
        if (launch.order) permute(turn, state);
        for (const u32 r : turn) {
            Resident& one = *resident[r];
            if (one.memory.block->finished) continue;
            if (pass(one.memory, order, state) || launch.stopped) continue;
            finish(one.memory);
            worker.progress++;
            if (next < blocks)
                begin(one);
            else
                busy--;
        }
    }

    u64 now() const {
        u64 hash = 1;
        for (const auto& one : resident)
            if (!one->memory.block->finished) hash = state_of(one->memory, hash);
        return hash;
    }

    void give_up() {
        for (const auto& one : resident)
            for (Warp& W : one->memory.warps) {
                if (one->memory.block->finished || W.state != YIELDED) continue;
                const u32 kind = launch.communicates ? DEADLOCK : STEP_LIMIT;
                fault(W, kind, ALL, first_lane(W.mask), W.pc, 0, W.steps);
                launch.stopped = 1;
                return;
            }
        launch.stopped = 1;
    }
};

void run_blocks(Worker& worker, u32 first, u32 step) {
    const Arithmetic arithmetic;
    Runner(worker, first, step).run();
}

}  // namespace

void fault(Warp& W, u32 kind, u32 site, u32 lane, u64 address, u32 bytes, u64 other,
           u32 other_site) {
    Launch& launch = *W.launch;
    const u64 index = __atomic_fetch_add(&launch.faults, 1, __ATOMIC_RELAXED);
    if (index >= launch.max_faults) return;
    Fault& made = launch.fault[index];
    made = {kind, site, {W.block->id[0], W.block->id[1], W.block->id[2]},
            W.index * LANES + lane, address, other, other_site, bytes, W.block->linear};
}

extern "C" void simt_launch(Launch* launch) {
    const u32 count = launch->host_threads;
    std::vector<std::vector<SiteCount>> sites(count);
    std::vector<std::vector<BlockCount>> blocks(count);
    std::vector<Worker> workers(count);
    std::vector<std::vector<u8>> wrote(count);
    for (u32 t = 0; t < count; t++) {
        sites[t].assign(launch->sites + 1, SiteCount{});
        blocks[t].assign(launch->blocks_of_code + 1, BlockCount{});
        wrote[t].assign(launch->windows + 1, 0);
        workers[t] = Worker{launch, sites[t].data(), blocks[t].data(), 0, launch->writer[t],
                            launch->reader[t], launch->writer_site[t], wrote[t].data(), nullptr, 0};
    }
    std::vector<std::thread> others;
    for (u32 t = 1; t < count; t++)
        others.emplace_back([&, t] { run_blocks(workers[t], t, count); });
    run_blocks(workers[0], 0, count);
    for (std::thread& other : others) other.join();
    if (count > 1) {
        // What stopped them, and which faults there was room for, depends on who was faster.
        const bool by_chance = launch->stopped || launch->faults > launch->max_faults;
        launch->conflict = by_chance || (launch->checks && cores_meet(*launch, workers));
    }
    for (u32 t = 0; t < count; t++) {
        for (u64 i = 0; i < launch->sites; i++) {
            SiteCount& total = launch->site[i];
            const SiteCount& own = sites[t][i];
            total.requests += own.requests;
            total.lanes += own.lanes;
            total.sectors += own.sectors;
            total.ideal_sectors += own.ideal_sectors;
            total.wavefronts += own.wavefronts;
            total.ideal_wavefronts += own.ideal_wavefronts;
            total.bytes += own.bytes;
            total.contended += own.contended;
        }
        for (u64 i = 0; i < launch->blocks_of_code; i++) {
            launch->block_count[i].warps += blocks[t][i].warps;
            launch->block_count[i].lanes += blocks[t][i].lanes;
        }
    }
}
