// A warp, its block and its launch, as a kernel translated from PTX and the runtime see them.
//
// A warp is a resumable state machine: its registers live in memory, its place is a block number
// of the control flow graph. Lanes that part ways become splits, each a place and a mask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "numbers.h"

constexpr u32 LANES = 32;
constexpr u32 ALL = ~0u;
constexpr u32 OUT = ~0u;  // in place of a block number: nothing of this warp can go on
constexpr u32 MAX_WARPS = 32;

// A 64-bit address is a window's number and an offset of 40 bits. Numbers below 0x80 are left to
// real addresses of the process, which pointers kept in memory may hold.
constexpr int WINDOW_SHIFT = 40;
constexpr u64 SHARED_WINDOW = 0xF0, LOCAL_WINDOW = 0xF1, PARAMETER_WINDOW = 0xF2;
constexpr u64 FIRST_WINDOW = 0x100;
constexpr u64 OFFSET_MASK = (1ull << WINDOW_SHIFT) - 1;

enum FaultKind : u32 {
    OUT_OF_BOUNDS = 1,
    NOT_WRITTEN,          // read of what was never written
    IN_FLIGHT,            // an asynchronous copy is not known to have landed
    RACE_WITH_WRITE,
    RACE_WITH_READ,
    RACE_IN_STORE,        // two lanes of one store, one address, different values
    DIVERGENT_BARRIER,
    MISALIGNED,
    READ_ONLY,
    LANE_MISSING,         // a warp-wide operation names or reads a lane that is not there
    DEADLOCK,
    STEP_LIMIT,
    ASSERTION,
    TRAP,
    NULL_POINTER,
    BAD_BARRIER,          // a barrier with a number or a count that cannot be
    ATOMIC_RACE,          // plain and atomic access, in no order
    PRIVATE_BOUNDS,       // outside local memory or the parameters
    WRONG_SPACE,
    ASYNC_UNFINISHED,     // the block ended with copies in flight
};

struct Fault {
    u32 kind, site, block[3], thread;
    u64 address, other;  // other: who else, or what it was
    u32 other_site, bytes;
    u64 launch_block;
};

// What one access site did; see counts.py for the units.
struct SiteCount {
    u64 requests, lanes, sectors, ideal_sectors, wavefronts, ideal_wavefronts, bytes, contended;
};
struct BlockCount {
    u64 warps, lanes;
};

// What was done to one granule of a window in a launch that is recorded; memory.py has the same.
struct Cell {
    u32 reads, writes, atomics;            // of lanes
    u32 readers, writers;                  // changes of block: different ones, where they run in turn
    u32 first_reader, last_reader;         // number of a block in its grid, from 1
    u32 first_writer, last_writer;
    u16 first_reading, last_reading;       // thread in its block
    u16 first_writing, last_writing;
};

// Memory of one tensor or variable. A granule is the smallest access of the kernel, 1 to 4 bytes.
struct Window {
    u8* host;
    u64 bytes;
    u8* written;   // a byte per byte, 1 once written; null: all of it is
    u64 flags;     // 1: read only
    Cell* record;  // of each granule; null where nothing is recorded
};

struct Warp;
struct Block;
struct Worker;
using Run = void (*)(Warp&);

// One launch. Laid out as layout.py declares it.
struct Launch {
    u64 windows;
    Window* window;
    u64 sites;
    SiteCount* site;
    u64 blocks_of_code;
    BlockCount* block_count;
    Fault* fault;
    u64 faults, max_faults;
    u32 grid[3], threads[3];
    u32 dynamic_shared, static_shared;
    const u8* parameters;
    u64 parameter_bytes;
    u64 register_bytes, local_bytes;
    Run run;
    const u32* depth;       // of each block of code in the tree of post-dominators
    const u32* above;       // its parent there; bit 31: it does nothing but end
    u64 order;              // 0: ascending; else the seed of a permutation of warps and blocks
    u32 checks, counts;
    u32 granule_shift, shared_granule_shift;
    u32 communicates;       // blocks or warps wait for one another through memory
    u32 host_threads;
    u32 one_program;        // a block is one program, whose threads may load what others do
    u32 max_resident;
    u32 quota;              // backward branches before a warp lets others run
    u64 step_limit;         // backward branches of one warp
    u64 first_block;        // number of this launch's first block in the shadow of its windows
    char* printed;
    u64 printed_bytes, max_printed;
    u64 stopped;            // a fault after which nothing can go on
    u64 conflict;           // two cores' blocks touched the same memory: run again on one
    u64 environment;        // address of the cooperative launch's workspace
    u64*** writer;          // [worker][window]: shadow.h
    u64*** reader;
    u32*** writer_site;
};

struct Split {
    u32 pc, mask, state, passed;
    u32 members;  // of the bar.warp.sync it waits at; 0 where it waits at anything else
};
enum SplitState : u32 { READY, AT_BARRIER, AT_WARP_SYNC };
constexpr u32 IN_VAIN = 2;  // Split::passed: it waited for lanes that never came

struct AsyncCopy {
    u64 from;   // address of the source in its window
    const u8* host;
    u32 to, bytes, source_bytes, site;
    u32 lane, group;
};

template <class T>
struct List {  // a growing array of plain values
    T* items = nullptr;
    u32 count = 0, room = 0;
    void push(const T& value) {
        if (count == room) grow();
        items[count++] = value;
    }
    void grow() {
        room = room ? room * 2 : 16;
        items = static_cast<T*>(__builtin_realloc(items, sizeof(T) * room));
    }
    ~List() { __builtin_free(items); }
};

struct Warp {
    alignas(64) u32 m32[LANES];   // all ones in active lanes
    alignas(64) u64 m64[LANES];
    alignas(64) u16 m16[LANES];
    alignas(64) u32 tid[3][LANES];
    u32 mask, alive;              // active lanes of the running split; lanes that have not left
    u32 all;                      // lanes that are threads of the block
    u32 passed;                   // the running split has been let through what it waited at
    u32 splits;                   // of the others
    Split split[LANES];
    u32 pc, state;                // where to go on; see WarpState
    u32 index;                    // in its block
    u32 clock, floor;             // see shadow.h
    u32 touched;                  // the clock at its latest access that left a trace
    u32 free_run;                 // depth is not looked at: some split must make progress
    u32 spins;
    u64 steps;
    u32 barrier_id, barrier_count, barrier_site;
    u32 vote;                     // what bar.red gave
    u32* known;                   // clocks of the other warps that are known beyond the floor
    u64 acquired;                 // the latest tick it knows of other blocks
    u64 seen;                     // the same once it has had a fence
    u32 copies_committed[LANES];
    List<AsyncCopy> copies;
    u8* registers;
    u8* local;                    // [lane][local_bytes]
    Block* block;
    Launch* launch;
    Worker* worker;
};
enum WarpState : u32 { RUNNING, WAITING, YIELDED, DONE };

struct NamedBarrier {
    u32 arrived, expected, red_count, red_and, red_or;
    u32 warps;  // bit mask of the warps that wait
    u32 who;    // bit mask of the warps that have arrived, waiting or not
};

struct Traces {  // of each granule of shared memory: shadow.h
    u32 *writer, *writer_site, *reader, *reader_site;
};

struct Release {  // a fence of one warp: sync.cc
    u32 clock, floor;
    u64 tick;
};

struct Block {
    u32 id[3];
    u64 number;                  // over all launches that share a shadow
    u32 warps, live;
    u32 clock;                   // source of the warps' clocks
    u8* shared;
    u32 shared_bytes;
    Traces traces;
    NamedBarrier barrier[16];
    Warp* warp;
    u64 seen;                    // the latest tick that a warp of it has seen: sync.cc
    List<Release>* releases = nullptr;  // of each warp, rising in all three; null before the first
    List<u32> floors;            // of its barriers, rising
    u32 finished;
    u64 linear;

    ~Block() { delete[] releases; }
};

struct alignas(64) Worker {  // a cache line of its own
    Launch* launch;
    SiteCount* site;
    BlockCount* block_count;
    u64 progress;                // changes whenever memory or a warp's state does
    u64** writer;                // shadow of each window, of this worker: shadow.h
    u64** reader;
    u32** writer_site;
    u8* wrote;                   // whether its blocks wrote to a window
    Block* all_blocks;           // of the launch, where they wait for one another
    u64 tick;                    // counts the fences of all blocks
};

inline void set_mask(Warp& W, u32 mask) {
    W.mask = mask;
    for (u32 l = 0; l < LANES; l++) W.m32[l] = mask >> l & 1 ? ~0u : 0u;
    for (u32 l = 0; l < LANES; l++) W.m64[l] = mask >> l & 1 ? ~0ull : 0ull;
    for (u32 l = 0; l < LANES; l++) W.m16[l] = static_cast<u16>(mask >> l & 1 ? 0xFFFF : 0);
}

// The lanes whose predicate is set, as a mask.
inline u32 bits(const u32* predicate) {
    u32 mask = 0;
    for (u32 l = 0; l < LANES; l++) mask |= (predicate[l] & 1u) << l;
    return mask;
}

// ---- control (schedule.cc). Each gives the block of code to go on with, or OUT.
u32 diverge(Warp& W, u32 taken, u32 to, u32 other);      // lanes of `taken` to `to`, the rest on
u32 arrive(Warp& W, u32 pc);                              // at the head of a block, with splits
u32 leave(Warp& W, u32 lanes);                            // these lanes have ended
u32 next_split(Warp& W);
u32 spun(Warp& W, u32 pc);                                // a backward branch, quota used up
u32 branch_table(Warp& W, const u32* index, const u32* to, u32 count);
// For the lanes that a .sync names; anywhere: they may be at another instruction like it.
u32 wait_lanes(Warp& W, u32 pc, u32 site, u32 members, u32 anywhere = 0);
void trap(Warp& W, u32 site, u32 kind, u32 mask);

// ---- barriers (sync.cc)
u32 gather(Warp& W, u32 pc, u32 site);
void check_members(Warp& W, u32 site, const u32* members);
bool wait_barrier(Warp& W, u32 pc, u32 site, u32 id, u32 count, u32 votes = 0, u32 operation = 0);
void arrive_barrier(Warp& W, u32 site, u32 id, u32 count, u32 mask);

void fault(Warp& W, u32 kind, u32 site, u32 lane, u64 address, u32 bytes, u64 other = 0,
           u32 other_site = ALL);
void not_converged(Warp& W, u32 site, u32 mask);
void sync_warp(Warp& W);                                  // bar.warp.sync: orders the lanes' memory
void fence(Warp& W, u32 scope);                          // 0 block, 1 device or system
void acquire_seen(Warp& W);                              // after an access that acquires
