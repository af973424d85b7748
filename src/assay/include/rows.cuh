// Rows of a matrix, each reduced by a warp or a block: held in registers, or walked if too long.
//
// A row that fits the registers of its threads is read once and written once, whatever is reduced
// over it in between. That is the fewest bytes there can be, and no reduction needs a second read.
#pragma once

#include "assay.cuh"

namespace assay {

// Rows of one warp each lie four to a block; else a block has one row.
template <int THREADS>
inline constexpr int rows_of_block = THREADS == 32 ? 4 : 1;
template <int THREADS>
inline constexpr int threads_of_block = THREADS * rows_of_block<THREADS>;
// Blocks that share a multiprocessor at least, for some 64 KB on their way at once: with less memory
// is idle, with much more it is slower again. With one or two vectors a thread that is 2,048 threads
// of 32 registers, else 1,024 of 64; of 8 bytes an element 512. Not more blocks than any
// multiprocessor takes, nor more threads.
#if __CUDA_ARCH__ == 750
inline constexpr int CROWD = 1024;
#elif __CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || \
    __CUDA_ARCH__ == 1200 || __CUDA_ARCH__ == 1210
inline constexpr int CROWD = 1536;
#else
inline constexpr int CROWD = 2048;
#endif
template <typename T, int THREADS, int VECS>
inline constexpr int crowd_of_held = THREADS > 512    ? 1024
                                     : sizeof(T) == 8 ? 512
                                     : VECS <= 2      ? CROWD
                                                      : 1024;
template <int THREADS, int CROWDED>
inline constexpr int blocks_of = CROWDED < 16 * THREADS ? CROWDED / THREADS : 16;
template <typename T, int THREADS, int VECS>
inline constexpr int blocks_of_held =
    blocks_of<threads_of_block<THREADS>, crowd_of_held<T, THREADS, VECS>>;

// The row of this thread, and its place among the THREADS threads of that row.
template <int THREADS>
__device__ __forceinline__ long long own_row() {
  return static_cast<long long>(blockIdx.x) * rows_of_block<THREADS> + threadIdx.x / THREADS;
}
template <int THREADS>
__device__ __forceinline__ int own_lane() {
  return threadIdx.x % THREADS;
}

// Combines over the threads of a row; each of them gets the result.
template <int THREADS, typename A, typename Combine>
__device__ __forceinline__ A row_reduce(A v, Combine combine) {
  if constexpr (THREADS == 32)
    return warp_reduce(v, combine);
  else
    return block_reduce<THREADS>(v, combine);
}

// At most THREADS * VECS * widest<T> elements in registers of THREADS threads.
//
// Where all rows begin at multiples of 16 bytes (`whole`), element (u, j) of a thread is the j-th
// of its u-th vector; else single elements are dealt out one by one, so that neighbours stay
// neighbours. Rows that are used together must be dealt out alike.
template <typename T, int THREADS, int VECS>
struct Held {
  using A = accumulator<T>;
  static constexpr int N = widest<T>;
  Wide<T, N> v[VECS];

  static __device__ __forceinline__ int index(bool whole, int u, int j) {
    const int lane = own_lane<THREADS>();
    return whole ? (u * THREADS + lane) * N + j : (u * N + j) * THREADS + lane;
  }

  // A whole row as it lies in memory. What lies beyond the row becomes `fill`, here and in `load`.
  static __device__ __forceinline__ void fetch(Raw (&raw)[VECS], const T* x, int n, T fill) {
#pragma unroll
    for (int u = 0; u < VECS; ++u) {
      const int i = index(true, u, 0);
      raw[u] = i < n ? load_raw(x + i) : filled(fill);
    }
  }

  __device__ __forceinline__ void load(const T* x, int n, bool whole, T fill) {
    if (whole) {
      Raw raw[VECS];
      fetch(raw, x, n, fill);
#pragma unroll
      for (int u = 0; u < VECS; ++u) v[u] = widen<T>(raw[u]);
    } else {
#pragma unroll
      for (int u = 0; u < VECS; ++u)
#pragma unroll
        for (int j = 0; j < N; ++j) {
          const int i = index(false, u, j);
          v[u][j] = to_float(i < n ? x[i] : fill);
        }
    }
  }

  // Each element is rounded once, here.
  __device__ __forceinline__ void store(T* y, int n, bool whole) const {
    if (whole) {
#pragma unroll
      for (int u = 0; u < VECS; ++u) {
        const int i = index(true, u, 0);
        if (i < n) assay::store(y + i, v[u]);
      }
    } else {
#pragma unroll
      for (int u = 0; u < VECS; ++u)
#pragma unroll
        for (int j = 0; j < N; ++j) {
          const int i = index(false, u, j);
          if (i < n) y[i] = from_float<T>(v[u][j]);
        }
    }
  }

  static __device__ __forceinline__ Raw filled(T fill) {
    Vec<T, N> all;
#pragma unroll
    for (int j = 0; j < N; ++j) all[j] = fill;
    Raw raw;
    memcpy(&raw, &all, sizeof(raw));
    return raw;
  }

  // f(a, u, j) of each element; what lies beyond the row is `fill` there too.
  template <typename F>
  __device__ __forceinline__ void each(F f) const {
#pragma unroll
    for (int u = 0; u < VECS; ++u)
#pragma unroll
      for (int j = 0; j < N; ++j) f(v[u][j], u, j);
  }

  // Each element becomes f of itself.
  template <typename F>
  __device__ __forceinline__ void change(F f) {
#pragma unroll
    for (int u = 0; u < VECS; ++u)
#pragma unroll
      for (int j = 0; j < N; ++j) v[u][j] = f(v[u][j], u, j);
  }

  // f(a, u, j) of all elements of a thread, combined: those of one place in their vectors first, so
  // that operations need not wait for one another.
  template <typename F, typename Combine>
  __device__ __forceinline__ A over(F f, Combine combine) const {
    A part[N];
#pragma unroll
    for (int j = 0; j < N; ++j) part[j] = f(v[0][j], 0, j);
#pragma unroll
    for (int u = 1; u < VECS; ++u)
#pragma unroll
      for (int j = 0; j < N; ++j) part[j] = combine(part[j], f(v[u][j], u, j));
#pragma unroll
    for (int half = N / 2; half > 0; half /= 2)
#pragma unroll
      for (int j = 0; j < half; ++j) part[j] = combine(part[j], part[j + half]);
    return part[0];
  }
  // The elements themselves, combined.
  template <typename Combine>
  __device__ __forceinline__ A over(Combine combine) const {
    return over([](A a, int, int) { return a; }, combine);
  }
};

// What a launcher knows of its rows: they fill all that their threads hold, so that n is a constant
// and nothing is asked at any vector; they are whole vectors; or neither.
enum class Row { ANY, WHOLE, FULL };

// Rows of whole vectors that begin between two of them, as those of a view may. Not inlined: its
// many jumps would lie in front of what is usual, and each block begin with code that no cache has.
template <typename F>
__device__ __noinline__ void by_elements(long long row, int n, F f) {
  f(row, Flag<false>{}, n);
}

// What a kernel that holds a row each begins with: f(row, whole, n) for the row of this thread.
// aligned: whether rows begin at multiples of 16 bytes, if they are whole vectors.
template <typename T, int THREADS, int VECS, Row ROW, typename F>
__device__ __forceinline__ void for_held_row(long long rows, long long n, bool aligned, F f) {
  const long long row = own_row<THREADS>();
  if (row >= rows) return;
  if constexpr (ROW == Row::ANY)
    f(row, Flag<false>{}, int(n));
  else if (aligned)
    f(row, Flag<true>{}, ROW == Row::FULL ? THREADS * VECS * widest<T> : int(n));
  else
    by_elements(row, int(n), f);
}

template <typename T>
__device__ __forceinline__ bool whole_vectors(long long n) {
  return n % widest<T> == 0;
}
template <typename T, typename... More>
__device__ __forceinline__ bool whole_vectors(long long n, const T* first, const More*... more) {
  return aligned(first) && whole_vectors<T>(n, more...);
}

// dx = slope(g, p, sum of own(g, p)) of the elements g of dy and p of y, whose rows are held.
template <typename T, int THREADS, int VECS, Row ROW, typename Own, typename Slope>
__device__ __forceinline__ void differentiate_held(T* dx, const T* dy, const T* y, long long rows,
                                                   long long n, Own own, Slope slope) {
  using A = accumulator<T>;
  const bool vectors = whole_vectors<T>(n, dx, dy, y);
  for_held_row<T, THREADS, VECS, ROW>(rows, n, vectors, [=](auto row, auto whole, int n) {
    const T zero = from_float<T>(0);
    Held<T, THREADS, VECS> g, p;
    g.load(dy + row * n, n, whole, zero);
    p.load(y + row * n, n, whole, zero);
    const auto part = g.over([&](A v, int u, int j) { return own(v, p.v[u][j]); }, Sum{});
    const A sum = row_reduce<THREADS>(part, Sum{});
    g.change([&](A v, int u, int j) { return slope(v, p.v[u][j], sum); });
    g.store(dx + row * n, n, whole);
  });
}

// Walks K rows of any length at once by a block of BLOCK threads: f(v, i, Count<M>) gets M
// neighbouring elements of each, from element i on, widened, as `v[k][j]`. `y` is a row that f
// writes, or null. A row of odd length starts anywhere, so: single elements up to the first 16-byte boundary,
// whole vectors, single elements again. Rows that are off by different amounts go one by one.
// AHEAD / K vectors of each row are on their way before the first is used: at 1,024 threads of a
// multiprocessor that is 64 KB, where one at a time would be 16.
template <int BLOCK, int K, typename T, typename F>
__device__ __forceinline__ void walk(const T* const (&in)[K], const T* y, long long n, F f) {
  constexpr int N = widest<T>, AHEAD = 4, U = AHEAD / K > 1 ? AHEAD / K : 1;
  const int off = misaligned(in[0]);
  bool same = y == nullptr || misaligned(y) == off;
#pragma unroll
  for (int k = 1; k < K; ++k) same = same && misaligned(in[k]) == off;

  const long long boundary = (16 - off) % 16 / int(sizeof(T));
  const long long head = same && boundary < n ? boundary : n;
  const long long tail = head + (n - head) / N * N;
  const auto single = [&](long long i) {
    Wide<T, 1> v[K];
#pragma unroll
    for (int k = 0; k < K; ++k) v[k][0] = to_float(in[k][i]);
    f(v, i, Count<1>{});
  };
  for (long long i = threadIdx.x; i < head; i += BLOCK) single(i);
  long long i = head + threadIdx.x * N;
  const auto vectors = [&](const Raw(&raw)[K], long long at) {
    Wide<T, N> v[K];
#pragma unroll
    for (int k = 0; k < K; ++k) v[k] = widen<T>(raw[k]);
    f(v, at, Count<N>{});
  };
  if constexpr (U > 1) {
    for (; i + (U - 1) * BLOCK * N < tail; i += U * BLOCK * N) {
      Raw raw[U][K];
#pragma unroll
      for (int u = 0; u < U; ++u)
#pragma unroll
        for (int k = 0; k < K; ++k) raw[u][k] = load_raw(in[k] + i + u * BLOCK * N);
#pragma unroll
      for (int u = 0; u < U; ++u) vectors(raw[u], i + u * BLOCK * N);
    }
  }
  for (; i < tail; i += BLOCK * N) {
    Raw raw[K];
#pragma unroll
    for (int k = 0; k < K; ++k) raw[k] = load_raw(in[k] + i);
    vectors(raw, i);
  }
  for (i = tail + threadIdx.x; i < n; i += BLOCK) single(i);
}

// Tiles of a row that one of `parts` blocks has: every parts-th, so that all read side by side, and
// each but the last is one round of `walk`. f(begin, length). Backwards, a second kernel begins
// with what the first one read last, and finds it in the L2 cache.
template <int BLOCK, typename T, int VECTORS = 4, typename F>
__device__ __forceinline__ void for_tiles(long long n, int part, int parts, F f,
                                          bool backwards = false) {
  constexpr long long TILE = BLOCK * VECTORS * widest<T>;
  const long long tiles = (n + TILE - 1) / TILE;
  for (long long t = part; t < tiles; t += parts) {
    const long long begin = (backwards ? tiles - 1 - t : t) * TILE;
    f(begin, n - begin < TILE ? n - begin : TILE);
  }
}

// What online softmax keeps of the elements seen so far: the largest, and the sum of exp(v -
// largest). Where all was -inf nothing is subtracted: exp(-inf - 0) adds 0, where exp(-inf + inf)
// would be NaN. A NaN never becomes the largest but enters the sum, as does inf - inf.
template <typename A>
struct Online {
  A largest = -INFINITY, sum = 0;
  static __device__ __forceinline__ A shift(A m) { return m == -INFINITY ? A(0) : m; }

  template <typename T, int M>
  __device__ __forceinline__ void take(const Wide<T, M>& v) {
    A top = largest;
#pragma unroll
    for (int j = 0; j < M; ++j) top = maximum(top, v[j]);
    const A by = shift(top);
    sum *= exponential_of_difference<T>(largest - by);  // one rescaling for the whole vector
    largest = top;
#pragma unroll
    for (int j = 0; j < M; ++j) sum += exponential_of_difference<T>(v[j] - by);
  }

  // Over a block of BLOCK threads; each of them gets the whole.
  template <int BLOCK>
  __device__ __forceinline__ void combine() {
    const A top = block_reduce<BLOCK>(largest, Max{});
    sum = block_reduce<BLOCK>(sum * exponential_of_difference<A>(largest - shift(top)), Sum{});
    largest = top;
  }
};

// The same where a logarithm of the sum is wanted. Where one element is nearly all, that lives on
// what is added to its 1, which would round it away: so ones are counted, and the rest is summed
// apart.
template <typename A>
struct Apart {
  A largest = -INFINITY, ones = 0, rest = 0;
  static __device__ __forceinline__ A shift(A m) { return Online<A>::shift(m); }

  __device__ __forceinline__ void add(A e) {
    if (e == A(1))
      ones += 1;
    else
      rest += e;
  }
  __device__ __forceinline__ void move_to(A top, A factor) {  // factor: exp(largest - top)
    if (top == largest) return;
    rest = (rest + ones) * factor;
    ones = 0;
    largest = top;
  }

  template <typename T, int M>
  __device__ __forceinline__ void take(const Wide<T, M>& v) {
    A top = largest;
#pragma unroll
    for (int j = 0; j < M; ++j) top = maximum(top, v[j]);
    const A by = shift(top);
    move_to(top, exponential_for<T>(largest - by));
#pragma unroll
    for (int j = 0; j < M; ++j) add(exponential_for<T>(v[j] - by));
  }

  template <int BLOCK>
  __device__ __forceinline__ void combine() {
    const A top = block_reduce<BLOCK>(largest, Max{});
    move_to(top, exponential(largest - shift(top)));
    ones = block_reduce<BLOCK>(ones, Sum{});
    rest = block_reduce<BLOCK>(rest, Sum{});
  }

  __device__ __forceinline__ A sum() const { return ones + rest; }
  // Of the sum. -inf where all was -inf: then ones and rest are 0. In double it is what PyTorch's
  // own is, digits lost and all: nothing wider is there to tell that they are.
  __device__ __forceinline__ A log() const {
    return sizeof(A) == 8 ? logarithm(sum()) : logarithm1p((ones - 1) + rest);
  }
};

}  // namespace assay
