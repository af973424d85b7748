// Rows that follow one another through one block: while a row is worked on, the next is on its way.
//
// A block that holds one row and ends has nothing on its way while it reduces and writes, and where a
// row fills a multiprocessor there is no other block to fill the gap. Here a block stays for many
// rows, and `cp.async` brings the next one to shared memory meanwhile. Each thread copies what it
// will read itself, so that waiting for its own copies is enough, and no barrier is needed.
#pragma once

#include "copies.cuh"
#include "rows.cuh"

namespace assay {

// Blocks that share a multiprocessor: 1,024 threads, so that each has 64 registers.
template <int THREADS>
inline constexpr int blocks_of_streamed = 1024 / THREADS;

// The `place`-th row in shared memory of all that a block has there.
template <typename T, int THREADS, int VECS>
struct Streamed {
  static constexpr int STEP = threads_of_block<THREADS> * 16, BYTES = VECS * STEP;
  unsigned slots;  // of this thread, in shared memory: one every STEP bytes

  __device__ __forceinline__ explicit Streamed(const void* shared, int place = 0)
      : slots(unsigned(__cvta_generic_to_shared(shared)) + place * BYTES + threadIdx.x * 16) {}

  // Sends for a row whose vectors begin at multiples of 16 bytes; what lies beyond it stays as it is.
  __device__ __forceinline__ void send_for(const T* x, int n) const {
#pragma unroll
    for (int u = 0; u < VECS; ++u) {
      const int i = Held<T, THREADS, VECS>::index(true, u, 0);
      if (i < n) copy_vector(slots + u * STEP, x + i);
    }
  }

  // The row that was sent for and waited for.
  __device__ __forceinline__ void receive(Held<T, THREADS, VECS>& held, int n, T fill) const {
#pragma unroll
    for (int u = 0; u < VECS; ++u) {
      const bool inside = held.index(true, u, 0) < n;
      const void* const slot = __cvta_shared_to_generic(slots + u * STEP);
      held.v[u] = widen<T>(inside ? *static_cast<const Raw*>(slot) : held.filled(fill));
    }
  }
};

// f(held, row) for every row of a block: `fill` lies beyond the end of each. Rows that do not begin
// at multiples of 16 bytes are loaded when it is their turn.
template <typename T, int THREADS, int VECS, typename F>
__device__ __forceinline__ void for_rows(const T* x, long long rows, long long n, bool whole,
                                         T fill, F f) {
  extern __shared__ __align__(16) unsigned char next[];
  const Streamed<T, THREADS, VECS> stream(next);
  const int count = int(n);
  long long row = blockIdx.x;
  const auto send_for = [&](long long wanted) {
    if (wanted >= rows) return;
    stream.send_for(x + wanted * n, count);
    commit_copies();
  };
  if (whole) send_for(row);
  for (; row < rows; row += gridDim.x) {
    Held<T, THREADS, VECS> held;
    if (whole) {
      await_copies<0>();
      stream.receive(held, count, fill);
      send_for(row + gridDim.x);
    } else {
      held.load(x + row * n, count, false, fill);
    }
    f(held, row);
  }
}

}  // namespace assay
