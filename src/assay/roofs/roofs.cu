// Kernels that do one thing each, so that their rate is a ceiling: read, write, copy, read shared
// memory, multiply and add, wait for all blocks, nothing. Data moves 16 bytes a lane.
//
// Loads and stores are volatile assembly: a compiler may leave none of them out and join no two.

typedef unsigned int u32;
typedef unsigned long long u64;

struct Quad { u32 x, y, z, w; };

static const int THREADS = 512, DEEP = 4;  // a tile: 512 lanes x 4 x 16 bytes = 32 KiB

__device__ inline Quad load_once(const Quad* at) {
    Quad v;
    asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
    return v;
}

__device__ inline Quad load_l2(const Quad* at) {
    Quad v;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
    return v;
}

__device__ inline void store_once(Quad* at, Quad v) {
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};"
                 :: "l"(at), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

__device__ inline void store_l2(Quad* at, Quad v) {
    asm volatile("st.global.cg.v4.u32 [%0], {%1, %2, %3, %4};"
                 :: "l"(at), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

__device__ inline u32 sum_of(Quad v) { return v.x + v.y + v.z + v.w; }

// The sum over a block, added to *sum by one lane: the result of every read is used.
__device__ inline void add_to(u32* sum, u32 mine) {
    for (int step = 16; step; step /= 2) mine += __shfl_down_sync(0xffffffffu, mine, step);
    __shared__ u32 of_warp[32];
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 all = 0;
        for (u32 warp = 0; warp < blockDim.x / 32; warp++) all += of_warp[warp];
        atomicAdd(sum, all);
    }
}

// *sum += all 32-bit words of x, modulo 2^32.       bytes: 4 n read. FLOP: 0. grid: a block a tile.
// Idea: each lane has four loads of 16 bytes on their way before it uses the first.
extern "C" __global__ void __launch_bounds__(512) read_tiles(u32* sum, const Quad* x) {
    const Quad* at = x + (u64)blockIdx.x * THREADS * DEEP + threadIdx.x;
    Quad v[DEEP];
#pragma unroll
    for (int i = 0; i < DEEP; i++) v[i] = load_once(at + i * THREADS);
    u32 mine = 0;
#pragma unroll
    for (int i = 0; i < DEEP; i++) mine += sum_of(v[i]);
    add_to(sum, mine);
}

// The same over a loop: a grid that fills the GPU once walks over all tiles.
extern "C" __global__ void __launch_bounds__(512) read_walks(u32* sum, const Quad* x, u64 tiles) {
    u32 mine = 0;
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const Quad* at = x + tile * THREADS * DEEP + threadIdx.x;
        Quad v[DEEP];
#pragma unroll
        for (int i = 0; i < DEEP; i++) v[i] = load_once(at + i * THREADS);
#pragma unroll
        for (int i = 0; i < DEEP; i++) mine += sum_of(v[i]);
    }
    add_to(sum, mine);
}

// y = value, word by word.                       bytes: 4 n written. FLOP: 0. grid: a block a tile.
// Idea: nothing but stores of 16 bytes, side by side.
extern "C" __global__ void __launch_bounds__(512) write_tiles(Quad* y, u32 value) {
    Quad* at = y + (u64)blockIdx.x * THREADS * DEEP + threadIdx.x;
    const Quad v = {value, value, value, value};
#pragma unroll
    for (int i = 0; i < DEEP; i++) store_once(at + i * THREADS, v);
}

// y = x.                              bytes: 4 n read + 4 n written. FLOP: 0. grid: a block a tile.
// Idea: all loads of a tile before its first store, so that reads and writes come in runs.
extern "C" __global__ void __launch_bounds__(512) copy_tiles(Quad* y, const Quad* x) {
    const u64 first = (u64)blockIdx.x * THREADS * DEEP + threadIdx.x;
    Quad v[DEEP];
#pragma unroll
    for (int i = 0; i < DEEP; i++) v[i] = load_once(x + first + i * THREADS);
#pragma unroll
    for (int i = 0; i < DEEP; i++) store_once(y + first + i * THREADS, v[i]);
}

// *sum += passes times all words of x, which the L2 holds.
// bytes: passes x 4 n read from L2. FLOP: 0. Idea: each pass gives a block other tiles than the last,
// so that no L1 could serve it.
extern "C" __global__ void __launch_bounds__(512)
read_in_l2(u32* sum, const Quad* x, u32 tiles, u32 passes) {
    u32 mine = 0;
    for (u32 pass = 0; pass < passes; pass++) {
        for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            const u32 other = (tile + pass * 17) % tiles;
            const Quad* at = x + (u64)other * THREADS * DEEP + threadIdx.x;
            Quad v[DEEP];
#pragma unroll
            for (int i = 0; i < DEEP; i++) v[i] = load_l2(at + i * THREADS);
#pragma unroll
            for (int i = 0; i < DEEP; i++) mine += sum_of(v[i]);
        }
    }
    add_to(sum, mine);
}

// y = value, passes times, in the L2.               bytes: passes x 4 n written to L2. FLOP: 0.
extern "C" __global__ void __launch_bounds__(512)
write_in_l2(Quad* y, u32 value, u32 tiles, u32 passes) {
    const Quad v = {value, value, value, value};
    for (u32 pass = 0; pass < passes; pass++)
        for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            Quad* at = y + (u64)((tile + pass * 17) % tiles) * THREADS * DEEP + threadIdx.x;
#pragma unroll
            for (int i = 0; i < DEEP; i++) store_l2(at + i * THREADS, v);
        }
}

// y = x, passes times, both in the L2.              bytes: passes x 8 n through L2. FLOP: 0.
extern "C" __global__ void __launch_bounds__(512)
copy_in_l2(Quad* y, const Quad* x, u32 tiles, u32 passes) {
    for (u32 pass = 0; pass < passes; pass++)
        for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            const u64 first = (u64)((tile + pass * 17) % tiles) * THREADS * DEEP + threadIdx.x;
            Quad v[DEEP];
#pragma unroll
            for (int i = 0; i < DEEP; i++) v[i] = load_l2(x + first + i * THREADS);
#pragma unroll
            for (int i = 0; i < DEEP; i++) store_l2(y + first + i * THREADS, v[i]);
        }
}

// *sum += rounds times what 16 loads of each lane find in shared memory, which holds 0, 1, 2, ...
// bytes: rounds x 16 x 16 x threads read from shared memory. FLOP: 0. block: 1024.
// Idea: a warp reads 512 bytes side by side, which is free of bank conflicts.
extern "C" __global__ void __launch_bounds__(1024) read_shared(u32* sum, u32 rounds) {
    __shared__ Quad held[2048];
    for (u32 i = threadIdx.x; i < 2048; i += blockDim.x) held[i] = {4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3};
    __syncthreads();
    const u32 at = (u32)__cvta_generic_to_shared(held + threadIdx.x);
    u32 mine = 0;
    for (u32 round = 0; round < rounds; round++) {
#pragma unroll
        for (int i = 0; i < 16; i++) {
            Quad v;
            asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at + i * 1024));
            mine += sum_of(v);
        }
    }
    add_to(sum, mine);
}

// y = the sum of 16 chains of v = a v + b, from v = 0, in each thread.
// bytes: 4 a thread. FLOP: rounds x 16 x 8 x 2 a thread. block: 512.
// Idea: 16 chains that do not wait for one another keep the FMA units full.
extern "C" __global__ void __launch_bounds__(512) multiply_add(float* y, float a, float b, u32 rounds) {
    float v[16];
#pragma unroll
    for (int i = 0; i < 16; i++) v[i] = 0.0f;
    for (u32 round = 0; round < rounds; round++) {
#pragma unroll
        for (int step = 0; step < 8; step++)
#pragma unroll
            for (int i = 0; i < 16; i++) v[i] = fmaf(v[i], a, b);
    }
    float all = 0.0f;
#pragma unroll
    for (int i = 0; i < 16; i++) all += v[i];
    y[blockIdx.x * blockDim.x + threadIdx.x] = all;
}

// Every block waits for all others, `rounds` times; launched cooperatively, so that all are there.
// bytes: one atomic a block and round. FLOP: 0. grid: a block a multiprocessor.
// Idea: each adds one to a count, and watches it until all have.
extern "C" __global__ void __launch_bounds__(1024) wait_on_count(u32* arrived, u32 rounds) {
    for (u32 now = 1; now <= rounds; now++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            u32 seen;
            asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                         : "=r"(seen) : "l"(arrived) : "memory");
            for (seen++; seen < now * gridDim.x;)
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                             : "=r"(seen) : "l"(arrived) : "memory");
        }
        __syncthreads();
    }
}

// The same. Idea: the last to arrive raises a round number, in another line, that the others watch.
extern "C" __global__ void __launch_bounds__(1024)
wait_on_round(u32* arrived, u32* round, u32 rounds) {
    for (u32 now = 1; now <= rounds; now++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            u32 seen;
            asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                         : "=r"(seen) : "l"(arrived) : "memory");
            if (seen == now * gridDim.x - 1)
                asm volatile("st.release.gpu.global.u32 [%0], %1;"
                             :: "l"(round), "r"(now) : "memory");
            else
                do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                                : "=r"(seen) : "l"(round) : "memory");
                while (seen < now);
        }
        __syncthreads();
    }
}

// Waits so many nanoseconds of the card's timer, which runs on whatever clock its multiprocessors
// have: a length that is known beforehand. bytes, FLOP: 0. grid: 1.
extern "C" __global__ void wait_on_timer(u64 nanoseconds) {
    u64 begun, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begun));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begun < nanoseconds);
}

// Nothing: what a launch costs.
extern "C" __global__ void nothing() {}
