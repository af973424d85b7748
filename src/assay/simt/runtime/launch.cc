// One launch: blocks of warps, run to their end, on one or several cores.
//
// Blocks that do not wait for one another are run one by one; the others all at once, each warp
// in turn until it waits or has spun through its quota.
#include <cstdlib>
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

constexpr u64 IDLE_ROUNDS = 2000;  // rounds in which nothing changed before it is a deadlock

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
        W.passed = W.splits = W.pc = W.floor = W.free_run = W.spins = 0;
        W.state = RUNNING;
        W.clock = 1;
        W.steps = W.acquired = 0;
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

void run_apart(Worker& worker, u32 first, u32 step) {
    const Arithmetic arithmetic;
    Launch& launch = *worker.launch;
    const u64 blocks = u64{launch.grid[0]} * launch.grid[1] * launch.grid[2];
    Memory memory(launch);
    auto order = ascending(memory.warps.size());
    u64 state = launch.order + first + 1;
    std::vector<u32> sequence;
    if (launch.order) {
        sequence = ascending(blocks);
        permute(sequence, state);
    }
    Block block;
    for (u64 b = first; b < blocks && !launch.stopped; b += step) {
        start(memory, block, worker, launch.order ? sequence[b] : b);
        while (pass(memory, order, state)) {
        }
        finish(memory);
    }
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

void run_together(Worker& worker) {
    const Arithmetic arithmetic;
    Launch& launch = *worker.launch;
    const u64 blocks = u64{launch.grid[0]} * launch.grid[1] * launch.grid[2];
    std::vector<Block> all(blocks);
    worker.all_blocks = all.data();
    std::vector<Memory*> resident;
    u64 next = 0, state = launch.order + 1;
    const auto most = static_cast<u64>(launch.max_resident);
    for (; next < blocks && next < most; next++) {
        resident.push_back(new Memory(launch));
        start(*resident.back(), all[next], worker, next);
    }
    auto order = ascending(Memory::warps_of(launch));
    auto turn = ascending(resident.size());
    u64 idle = 0, seen = worker.progress, left = resident.size();
    while (left && !launch.stopped) {
        if (launch.order) permute(turn, state);
        for (const u32 r : turn) {
            Memory& memory = *resident[r];
            if (memory.block->finished) continue;
            if (pass(memory, order, state) || launch.stopped) continue;
            finish(memory);
            worker.progress++;
            if (next < blocks) {
                start(memory, all[next], worker, next);
                next++;
            } else {
                left--;
            }
        }
        idle = worker.progress == seen ? idle + 1 : 0;
        seen = worker.progress;
        if (idle > IDLE_ROUNDS) {
            for (Memory* memory : resident) {
                if (memory->block->finished) continue;
                Warp& W = memory->warps[0].state == DONE ? memory->warps.back() : memory->warps[0];
                fault(W, DEADLOCK, ALL, first_lane(W.mask ? W.mask : 1), W.pc, 0, 1);
                break;
            }
            launch.stopped = 1;
        }
    }
    for (Memory* memory : resident) delete memory;
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
    if (launch->communicates) {
        run_together(workers[0]);
    } else {
        std::vector<std::thread> others;
        for (u32 t = 1; t < count; t++)
            others.emplace_back([&, t] { run_apart(workers[t], t, count); });
        run_apart(workers[0], 0, count);
        for (std::thread& other : others) other.join();
        if (count > 1 && launch->checks) launch->conflict = cores_meet(*launch, workers);
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
