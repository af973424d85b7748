// Watched memory: every access goes through here, N bytes a lane, `pack` holding lane after lane.
// Lanes that are not in the mask are neither read nor written, in memory or in the pack.
#pragma once

#include "warp.h"

template <int N>
void load_global(Warp& W, u32 mask, const u64* address, u32 site, void* pack);
template <int N>
void store_global(Warp& W, u32 mask, const u64* address, u32 site, const void* pack);
template <int N>
void load_shared(Warp& W, u32 mask, const u32* address, u32 site, void* pack);
template <int N>
void store_shared(Warp& W, u32 mask, const u32* address, u32 site, const void* pack);
template <int N>
void load_generic(Warp& W, u32 mask, const u64* address, u32 site, void* pack);
template <int N>
void store_generic(Warp& W, u32 mask, const u64* address, u32 site, const void* pack);
template <int N>
void load_local(Warp& W, u32 mask, const u32* address, u32 site, void* pack);
template <int N>
void store_local(Warp& W, u32 mask, const u32* address, u32 site, const void* pack);
template <int N>
void load_parameter(Warp& W, u32 mask, const u64* address, u32 site, void* pack);

// Accesses that order blocks or warps: volatile, relaxed, acquire, release.
template <int N>
void load_global_strong(Warp& W, u32 mask, const u64* address, u32 site, void* pack);
template <int N>
void store_global_strong(Warp& W, u32 mask, const u64* address, u32 site, const void* pack);
template <int N>
void load_shared_strong(Warp& W, u32 mask, const u32* address, u32 site, void* pack);
template <int N>
void store_shared_strong(Warp& W, u32 mask, const u32* address, u32 site, const void* pack);
template <int N>
void load_generic_strong(Warp& W, u32 mask, const u64* address, u32 site, void* pack);
template <int N>
void store_generic_strong(Warp& W, u32 mask, const u64* address, u32 site, const void* pack);

enum AtomicOperation : u32 {
    ATOM_ADD, ATOM_MIN, ATOM_MAX, ATOM_AND, ATOM_OR, ATOM_XOR, ATOM_EXCH, ATOM_CAS, ATOM_INC,
    ATOM_DEC,
};
enum AtomicType : u32 {
    TYPE_U32, TYPE_S32, TYPE_U64, TYPE_S64, TYPE_F32, TYPE_F64, TYPE_F16, TYPE_BF16, TYPE_F16X2,
    TYPE_BF16X2, TYPE_U16,
};
// Generic or global addresses. old: null, or the lanes' former values; b, c: packs of operands.
// order: 0 relaxed, 1 acquire, 2 release, 3 both.
void atomic(Warp& W, u32 mask, const u64* address, u32 site, u32 operation, u32 type, u32 order,
            void* old, const void* b, const void* c);

// Asynchronous copies of global to shared memory.
void copy_async(Warp& W, u32 mask, const u32* to, const u64* from, u32 site, u32 bytes,
                const u32* source_bytes);
void commit_async(Warp& W, u32 mask);
void wait_async(Warp& W, u32 mask, u32 left);
void wait_async_all(Warp& W, u32 mask);

// Rows of a warp-wide access: one lane's address, several bytes.
void read_row(Warp& W, u32 site, u32 lane, u32 shared_address, u32 bytes, void* to);
void write_row(Warp& W, u32 site, u32 lane, u32 shared_address, u32 bytes, const void* from);
void read_generic(Warp& W, u32 site, u32 lane, u64 address, u32 bytes, void* to);
void write_generic(Warp& W, u32 site, u32 lane, u64 address, u32 bytes, const void* from);
void count_rows(Warp& W, u32 site, const u32* address, u32 matrices);
void load_matrix(Warp& W, u32 site, const u32* address, u32 matrices, u32 transposed,
                 u32* const* to);
void store_matrix(Warp& W, u32 site, const u32* address, u32 matrices, u32 transposed,
                  const u32* const* from);

inline u64 shared_to_generic(Warp&, u32 address) {
    return (SHARED_WINDOW << WINDOW_SHIFT) + address;
}
inline u64 in_window(u64 address, u64 window) { return (address >> WINDOW_SHIFT) == window; }
inline u64 is_global(u64 address) {
    const u64 window = address >> WINDOW_SHIFT;
    return window < SHARED_WINDOW || window >= FIRST_WINDOW;
}

// Device printf: a format string and a buffer of arguments, both generic addresses.
void print(Warp& W, u32 mask, const u64* format, const u64* arguments, u32 site, u32* result);
void assertion(Warp& W, u32 mask, const u64* message, const u64* file, const u32* line,
               const u64* function, u32 site);

// mbarrier objects in shared memory.
void mbarrier_init(Warp& W, u32 mask, const u32* address, const u32* count, u32 site);
void mbarrier_inval(Warp& W, u32 mask, const u32* address, u32 site);
void mbarrier_arrive(Warp& W, u32 mask, const u32* address, const u32* count, u32 expect,
                     u32 site, u64* state);
void mbarrier_arrive_async(Warp& W, u32 mask, const u32* address, u32 noinc, u32 site);
void mbarrier_test(Warp& W, u32 mask, const u32* address, const u64* state, u32 parity, u32 site,
                   u32* done);
