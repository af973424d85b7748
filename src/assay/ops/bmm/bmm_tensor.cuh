// y[b] = p[b] @ q[b] of 16-bit numbers, by tensor cores.
//
// bmm_tensor  a block computes SIDE x SIDE of y, a warp WARP x 32 of it in registers, as sums of
//             products of 16 x 16 by 16 x 8 (mma.sync, from sm_80 on). Tiles of p and q come to
//             shared memory 16 bytes at a time, STAGES - 1 of them ahead of what is multiplied.
//
// Its gradients are products of a matrix that lies transposed: dp = dy q^T, dq = p^T dy. A tile of
// it lies in shared memory as it lies in memory, and ldmatrix turns it on its way to registers.
//
// shapes  p: (batch, m, k), or (batch, k, m) where P_TURNED; q: (batch, k, n), or (batch, n, k)
//         where Q_TURNED; y: (batch, m, n); batch is the grid's z
// bytes   batch * (m k + k n + m n) * 2, if every element is read once
// FLOPs   2 * batch * m * n * k
#pragma once

#include "copies.cuh"

constexpr int VECTOR = 8;  // elements in 16 bytes

// sum += a b: a of 16 x 16, b of 16 x 8, sum of 16 x 8 (PTX ISA, mma.m16n8k16 for their layouts).
__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0,
                                         unsigned b1, __half) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0,
                                         unsigned b1, __nv_bfloat16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Tiles of p or of q: SIDE lines, DEPTH of k, each as it lies in memory. ALONG: a line's numbers
// lie side by side there, as p's rows do; else its neighbours are of other lines, as in q's rows.
// Beyond the matrix lie zeros. PAD: elements that a row is longer by in shared memory: 16 bytes, so
// that eight rows of 16 bytes, which ldmatrix reads, lie in all banks.
template <typename T, int SIDE, int DEPTH, int PAD, int THREADS, bool ALONG>
struct Tiles {
  static constexpr int ROWS = ALONG ? SIDE : DEPTH, COLUMNS = ALONG ? DEPTH : SIDE;
  static constexpr int PITCH = (COLUMNS + PAD) * sizeof(T), BYTES = ROWS * PITCH;
  static constexpr int ACROSS = COLUMNS / VECTOR, MINE = ROWS * ACROSS / THREADS;
  static_assert(ROWS * ACROSS % THREADS == 0, "every thread sends for equally many vectors");
  const T* x;
  const int first, rows, columns;
  const bool whole;  // every row begins at a multiple of 16 bytes, and its end cuts no vector
  const unsigned room;

  __device__ __forceinline__ Tiles(const T* x, int lines, int k, int first, unsigned room)
      : x(x),
        first(first),
        rows(ALONG ? lines : k),
        columns(ALONG ? k : lines),
        whole(columns % VECTOR == 0 && assay::aligned<16>(x)),
        room(room) {}

  __device__ __forceinline__ void send_for(int c0, int stage) const {
    const int row0 = ALONG ? first : c0, column0 = ALONG ? c0 : first;
#pragma unroll
    for (int u = 0; u < MINE; ++u) {
      const int place = threadIdx.x + u * THREADS;
      const int down = place / ACROSS, on = place % ACROSS * VECTOR;
      const int row = row0 + down, column = column0 + on;
      const T* const from = x + static_cast<long long>(row) * columns + column;
      const unsigned to = room + stage * BYTES + down * PITCH + on * int(sizeof(T));
      const bool inside = row < rows && column < columns;
      if (whole) {
        assay::copy_vector_or_zeros(to, inside ? from : x, inside);
        continue;
      }
      assay::Vec<T, VECTOR> v;
#pragma unroll
      for (int e = 0; e < VECTOR; ++e)
        v[e] = inside && column + e < columns ? from[e] : assay::from_float<T>(0);
      *static_cast<assay::Vec<T, VECTOR>*>(__cvta_shared_to_generic(to)) = v;
    }
  }

  // 16 lines, 16 of k: pieces of 8 x 8, first those of the first 8 of k. A lane gives the address of
  // 16 bytes, and gets two neighbours along k of each piece (PTX ISA, ldmatrix).
  __device__ __forceinline__ void load(unsigned (&piece)[4], int stage, int line, int deep) const {
    const int lane = threadIdx.x % 32, below = lane / 8 % 2 * 8, after = lane / 16 * 8;
    const int row = ALONG ? line + below + lane % 8 : deep + after + lane % 8;
    const int column = ALONG ? deep + after : line + below;
    const unsigned at = room + stage * BYTES + row * PITCH + column * int(sizeof(T));
    if constexpr (ALONG)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(piece[0]), "=r"(piece[1]), "=r"(piece[2]), "=r"(piece[3])
                   : "r"(at)
                   : "memory");
    else
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(piece[0]), "=r"(piece[1]), "=r"(piece[2]), "=r"(piece[3])
                   : "r"(at)
                   : "memory");
  }
};

// Four lanes have a word of each of four vectors: the q-th one gets all of the q-th vector.
__device__ __forceinline__ assay::Raw gathered(const unsigned (&word)[4]) {
  const bool odd = threadIdx.x % 2, high = threadIdx.x / 2 % 2;
  unsigned pair[2][2];  // of vectors odd and 2 + odd: words of this lane and of its neighbour
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const unsigned own = odd ? word[2 * h + 1] : word[2 * h];
    const unsigned other = __shfl_xor_sync(~0u, odd ? word[2 * h] : word[2 * h + 1], 1);
    pair[h][0] = odd ? other : own;
    pair[h][1] = odd ? own : other;
  }
  assay::Raw raw;
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const unsigned own = high ? pair[1][e] : pair[0][e];
    const unsigned other = __shfl_xor_sync(~0u, high ? pair[0][e] : pair[1][e], 2);
    raw[e] = high ? other : own;
    raw[2 + e] = high ? own : other;
  }
  return raw;
}

template <typename T, int SIDE, int WARP, int DEPTH, int STAGES, int PAD, bool P_TURNED,
          bool Q_TURNED>
__global__ void __launch_bounds__(SIDE / WARP * (SIDE / 32) * 32, 2)
    bmm_tensor(T* y, const T* p, const T* q, int m, int n, int k) {
  constexpr int ACROSS = SIDE / 32, THREADS = SIDE / WARP * ACROSS * 32;
  constexpr int DOWN = WARP / 16, ALONG = 4;  // pieces of 16 x 8 of a warp
  using OfP = Tiles<T, SIDE, DEPTH, PAD, THREADS, !P_TURNED>;
  using OfQ = Tiles<T, SIDE, DEPTH, PAD, THREADS, Q_TURNED>;
  extern __shared__ __align__(16) unsigned char staged[];
  const long long b = blockIdx.z;
  p += b * m * k;
  q += b * k * n;
  y += b * m * n;
  const int i0 = blockIdx.y * SIDE, j0 = blockIdx.x * SIDE;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int down = warp / ACROSS * WARP, along = warp % ACROSS * 32;

  const unsigned room = unsigned(__cvta_generic_to_shared(staged));
  const OfP of_p(p, m, k, i0, room);
  const OfQ of_q(q, n, k, j0, room + STAGES * OfP::BYTES);
  const int tiles = k / DEPTH + (k % DEPTH != 0);
  const auto send_for = [&](int tile) {
    if (tile < tiles) {
      of_p.send_for(tile * DEPTH, tile % STAGES);
      of_q.send_for(tile * DEPTH, tile % STAGES);
    }
    assay::commit_copies();
  };
#pragma unroll
  for (int tile = 0; tile < STAGES - 1; ++tile) send_for(tile);

  float sum[DOWN][ALONG][4] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    assay::await_copies<STAGES - 2>();
    __syncthreads();  // this tile is there for all, and none still reads the one before it
    send_for(tile + STAGES - 1);
#pragma unroll
    for (int deep = 0; deep < DEPTH; deep += 16) {
      unsigned left[DOWN][4], right[ALONG / 2][4];
#pragma unroll
      for (int r = 0; r < DOWN; ++r) of_p.load(left[r], tile % STAGES, down + 16 * r, deep);
#pragma unroll
      for (int s = 0; s < ALONG / 2; ++s) of_q.load(right[s], tile % STAGES, along + 16 * s, deep);
#pragma unroll
      for (int r = 0; r < DOWN; ++r)
#pragma unroll
        for (int s = 0; s < ALONG; ++s)
          multiply(sum[r][s], left[r], right[s / 2][s % 2], right[s / 2][2 + s % 2], T());
    }
  }

  const bool whole = n % VECTOR == 0 && assay::aligned<16>(y);
  const int j = j0 + along + lane % 4 * VECTOR;
#pragma unroll
  for (int r = 0; r < DOWN; ++r)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      unsigned word[ALONG];
#pragma unroll
      for (int s = 0; s < ALONG; ++s)
        word[s] = assay::word_of(sum[r][s][2 * half], sum[r][s][2 * half + 1], T());
      const assay::Raw raw = gathered(word);
      const int i = i0 + down + 16 * r + 8 * half + lane / 4;
      if (i >= m || j >= n) continue;
      assay::Vec<T, VECTOR> v;
      memcpy(&v, &raw, sizeof(v));
      T* const at = y + static_cast<long long>(i) * n + j;
      if (whole) {
        assay::store(at, v);
      } else {
#pragma unroll
        for (int e = 0; e < VECTOR; ++e)
          if (j + e < n) at[e] = v[e];
      }
    }
}
