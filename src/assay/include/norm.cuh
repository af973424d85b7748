// Rows normalised: y = (x - mean) rstd w + b (layernorm) and y = x rstd w (rmsnorm).
//
//   mean = sum x / n, rstd = 1 / sqrt(sum (x - mean)^2 / n + eps); rmsnorm has mean = 0 and no b.
//
// A row in registers is read once: mean, then the squares about it, which loses no digits where the
// mean is large. The gradients are in norm_grad.cuh.
#pragma once

#include "registers.cuh"
#include "streamed.cuh"

namespace assay {

template <typename A>
struct Statistics {
  A mean, rstd;
};

__device__ __forceinline__ float reciprocal_root(float v) { return rsqrtf(v); }
__device__ __forceinline__ double reciprocal_root(double v) { return rsqrt(v); }

template <bool CENTRED, typename T, int THREADS, int VECS>
__device__ __forceinline__ Statistics<accumulator<T>> statistics(
    const Held<T, THREADS, VECS>& x, int n, bool whole, accumulator<T> eps) {
  using A = accumulator<T>;
  A mean = 0;
  if constexpr (CENTRED)  // beyond the row: 0
    mean = row_reduce<THREADS>(x.over(Sum{}), Sum{}) / n;
  const auto square = [=](A v, int, int) { return (v - mean) * (v - mean); };
  const bool full = n == THREADS * VECS * x.N || !CENTRED;
  const A squares = full ? x.over(square, Sum{})
                         : x.over(
                               [&](A v, int u, int j) {
                                 return x.index(whole, u, j) < n ? square(v, u, j) : A(0);
                               },
                               Sum{});
  return {mean, reciprocal_root(row_reduce<THREADS>(squares, Sum{}) / n + eps)};
}

template <bool CENTRED, int BLOCK, typename T>
__device__ __forceinline__ Statistics<accumulator<T>> statistics(const T* x, long long n,
                                                                 accumulator<T> eps) {
  using A = accumulator<T>;
  const T* const in[1] = {x};
  const T* const none = nullptr;
  A mean = 0, squares = 0;
  if constexpr (CENTRED) {
    A sum = 0;
    walk<BLOCK>(in, none, n, [&](auto& v, long long, auto count) {
#pragma unroll
      for (int j = 0; j < count.value; ++j) sum += v[0][j];
    });
    mean = block_reduce<BLOCK>(sum, Sum{}) / A(n);
  }
  walk<BLOCK>(in, none, n, [&](auto& v, long long, auto count) {
#pragma unroll
    for (int j = 0; j < count.value; ++j) {
      const A d = v[0][j] - mean;
      squares += d * d;
    }
  });
  return {mean, reciprocal_root(block_reduce<BLOCK>(squares, Sum{}) / A(n) + eps)};
}

// y of one row, whose x is in registers.
template <bool CENTRED, typename T, int THREADS, int VECS>
__device__ __forceinline__ void normalise(Held<T, THREADS, VECS>& v, T* to, const T* w, const T* b,
                                          int count, bool whole, accumulator<T> eps) {
  using A = accumulator<T>;
  constexpr int N = widest<T>;
  const auto s = statistics<CENTRED>(v, count, whole, eps);
  const auto normal = [&](A value, A scale, A shift) {
    const A h = (value - s.mean) * s.rstd * scale;
    return CENTRED ? h + shift : h;
  };
  // w and b come out of a cache a vector at a time: all at once would fill registers that more rows
  // in flight can use.
#pragma unroll
  for (int u = 0; u < VECS; ++u) {
    if (whole) {
      const int i = v.index(true, u, 0);
      if (i >= count) continue;
      const auto scale = widen<T>(load_raw(w + i));
      auto shift = scale;
      if constexpr (CENTRED) shift = widen<T>(load_raw(b + i));
#pragma unroll
      for (int j = 0; j < N; ++j) v.v[u][j] = normal(v.v[u][j], scale[j], shift[j]);
      store(to + i, v.v[u]);
    } else {
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const int i = v.index(false, u, j);
        if (i >= count) continue;
        const A shift = CENTRED ? to_float(b[i]) : A(0);
        to[i] = from_float<T>(normal(v.v[u][j], to_float(w[i]), shift));
      }
    }
  }
}

template <bool CENTRED, typename T>
__device__ __forceinline__ bool whole_rows(const T* y, const T* x, const T* w, const T* b,
                                           long long n) {
  return whole_vectors<T>(n, x, y, w) && (!CENTRED || aligned(b));
}

template <bool CENTRED, typename T, int THREADS, int VECS>
__device__ __forceinline__ void normalise_held(T* y, const T* x, const T* w, const T* b,
                                               long long rows, long long n, accumulator<T> eps) {
  const long long row = own_row<THREADS>();
  if (row >= rows) return;
  const bool whole = whole_rows<CENTRED>(y, x, w, b, n);
  Held<T, THREADS, VECS> v;
  v.load(x + row * n, int(n), whole, from_float<T>(0));
  normalise<CENTRED>(v, y + row * n, w, b, int(n), whole, eps);
}

template <bool CENTRED, typename T, int THREADS, int VECS>
__device__ __forceinline__ void normalise_streamed(T* y, const T* x, const T* w, const T* b,
                                                   long long rows, long long n,
                                                   accumulator<T> eps) {
  const bool whole = whole_rows<CENTRED>(y, x, w, b, n);
  for_rows<T, THREADS, VECS>(x, rows, n, whole, from_float<T>(0), [&](auto& v, long long row) {
    normalise<CENTRED>(v, y + row * n, w, b, int(n), whole, eps);
  });
}

template <bool CENTRED, typename T, int BLOCK>
__device__ __forceinline__ void normalise_walked(T* y, const T* x, const T* w, const T* b,
                                                 long long n, accumulator<T> eps) {
  x += blockIdx.x * n;
  y += blockIdx.x * n;
  const auto s = statistics<CENTRED, BLOCK>(x, n, eps);
  const auto write = [&](auto& v, long long i, auto count) {
#pragma unroll
    for (int j = 0; j < count.value; ++j) {
      auto h = (v[0][j] - s.mean) * s.rstd * v[1][j];
      if constexpr (CENTRED) h += to_float(b[i + j]);
      v[0][j] = h;
    }
    store(y + i, v[0]);
  };
  const T* const in[2] = {x, w};
  walk<BLOCK>(in, y, n, write);
}

// The mean of 32 values that lie spread over n (of all, where there are fewer): the same in every
// thread, and what squares are taken about. sum (x - k)^2 - n (mean - k)^2 loses the more digits the
// further k lies from the mean, and so do the sums themselves: a value drawn alone lies three
// deviations away once in 370 times, this one 0.5.
template <typename T>
__device__ __forceinline__ accumulator<T> near_mean(const T* x, long long n) {
  const int count = n < 32 ? int(n) : 32;
  const int lane = threadIdx.x % 32;
  const auto own = lane < count ? to_float(x[lane * (n / count)]) / count : accumulator<T>(0);
  return warp_reduce(own, Sum{});
}

// Tiles of a row by a block, where rows are few and long. kept: (rows, parts, 3): how many elements
// the tiles have, their mean, and the squares about it (or, not CENTRED, about 0).
template <bool CENTRED, int BLOCK, typename T>
__device__ __forceinline__ void norm_parts(accumulator<T>* kept, const T* x, long long n,
                                           int parts) {
  using A = accumulator<T>;
  let_next_kernel_start();
  const int part = blockIdx.x % parts;
  x += blockIdx.x / parts * n;
  const A about = CENTRED && n > 0 ? near_mean(x, n) : A(0);
  A sum = 0, squares = 0;
  long long count = 0;
  for_tiles<BLOCK, T>(n, part, parts, [&](long long begin, long long length) {
    const T* const in[1] = {x + begin};
    count += length;
    walk<BLOCK>(in, static_cast<const T*>(nullptr), length, [&](auto& v, long long, auto many) {
      A own = 0, of_squares = 0;  // of a vector first: adds of several need not wait
#pragma unroll
      for (int j = 0; j < many.value; ++j) {
        const A d = v[0][j] - about;
        if constexpr (CENTRED) own += d;
        of_squares += d * d;
      }
      sum += own;
      squares += of_squares;
    });
  });
  if constexpr (CENTRED) sum = block_reduce<BLOCK>(sum, Sum{});
  squares = block_reduce<BLOCK>(squares, Sum{});
  if (threadIdx.x != 0) return;
  const A shift = count > 0 ? sum / A(count) : A(0);
  A* const mine = kept + 3 * static_cast<long long>(blockIdx.x);
  mine[0] = A(count);
  mine[1] = about + shift;
  mine[2] = squares - sum * shift;
}

// Of `parts` parts together, n elements, by BLOCK threads, a block or a warp: each thread gets it.
// KINDS numbers are kept of each part.
template <bool CENTRED, int BLOCK, int KINDS = 3, typename A>
__device__ __forceinline__ Statistics<A> joined(const A* kept, long long n, int parts, A eps) {
  const int first = threadIdx.x % BLOCK;
  A mean = 0, squares = 0;
  if constexpr (CENTRED) {
    for (int p = first; p < parts; p += BLOCK) mean += kept[KINDS * p] * kept[KINDS * p + 1];
    mean = block_reduce<BLOCK>(mean, Sum{}) / A(n);
  }
  for (int p = first; p < parts; p += BLOCK) {
    const A apart = kept[KINDS * p + 1] - mean;
    squares += kept[KINDS * p + 2] + (CENTRED ? kept[KINDS * p] * apart * apart : A(0));
  }
  return {mean, reciprocal_root(block_reduce<BLOCK>(squares, Sum{}) / A(n) + eps)};
}

// y of ROWS rows at a time, so that w and b, which may be as long as x, come once for all of them.
// A block asks for its first tile before the kernel in front of this one has ended: that wrote none
// of it, and its last blocks and the start of this kernel would leave memory idle.
template <bool CENTRED, int BLOCK, int ROWS, typename T>
__device__ __forceinline__ void norm_write(T* y, const accumulator<T>* kept, const T* x,
                                           const T* w, const T* b, long long rows, long long n,
                                           int parts, accumulator<T> eps) {
  using A = accumulator<T>;
  constexpr int K = ROWS + (CENTRED ? 2 : 1), N = widest<T>;
  constexpr long long TILE = BLOCK * N;
  __shared__ Statistics<A> of[ROWS];
  const int groups = int((rows + ROWS - 1) / ROWS), writers = gridDim.x / groups;
  const int writer = blockIdx.x % writers;
  const long long first = static_cast<long long>(blockIdx.x / writers) * ROWS;
  const auto row = [&](int r) { return first + r < rows ? first + r : rows - 1; };

  // From the last to the first: what the kernel in front read last is in the L2 cache.
  const bool whole = whole_rows<CENTRED>(y, x, w, b, n) && first + ROWS <= rows;
  const long long tiles = (n + TILE - 1) / TILE;
  long long at = (tiles - 1 - writer) * TILE + threadIdx.x * N;
  Raw raw[K];
  // Of `ROWS` rows: addresses of all would take more registers than there are, and so each is worked
  // out of `pitch` when it is its turn.
  long long pitch = n;
  const auto fetch = [&] {
    if (!whole || at < 0 || at >= n) return;
    const T* from = x + first * n + at;
#pragma unroll
    for (int r = 0; r < ROWS; ++r, from += pitch) raw[r] = load_raw(from);
    raw[ROWS] = load_raw(w + at);
    if constexpr (CENTRED) raw[ROWS + 1] = load_raw(b + at);
  };
  fetch();
  await_previous_kernel();
  const int warp = threadIdx.x / 32;
  if (warp < ROWS) {
    const auto s = joined<CENTRED, 32>(kept + row(warp) * parts * 3, n, parts, eps);
    if (threadIdx.x % 32 == 0) of[warp] = s;
  }
  __syncthreads();
  const auto normalise = [&](auto& v, int r, const auto& scale, const auto& shift, auto count) {
    const auto s = of[r];
#pragma unroll
    for (int j = 0; j < count.value; ++j) {
      v[j] = (v[j] - s.mean) * s.rstd * scale[j];
      if constexpr (CENTRED) v[j] += shift[j];
    }
  };

  if (whole) {
    for (; at >= 0; at -= writers * TILE, fetch()) {
      if (at >= n) continue;
      asm volatile("" : "+l"(pitch));
      T* to = y + first * n + at;
#pragma unroll
      for (int r = 0; r < ROWS; ++r, to += pitch) {
        widen_anew<T>(raw[ROWS]);
        widen_anew<T>(raw[K - 1]);
        auto v = widen<T>(raw[r]);
        normalise(v, r, widen<T>(raw[ROWS]), widen<T>(raw[K - 1]), Count<N>{});
        store<true>(to, v);
      }
    }
    return;
  }
  const auto tile = [&](long long begin, long long length) {
    const T* in[K];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) in[r] = x + row(r) * n + begin;
    in[ROWS] = w + begin;
    if constexpr (CENTRED) in[ROWS + 1] = b + begin;
    T* const to = y + first * n + begin;
    walk<BLOCK>(in, to, length, [&](auto& v, long long i, auto count) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        normalise(v[r], r, v[ROWS], v[K - 1], count);
        if (first + r < rows) store<true>(to + r * n + i, v[r]);
      }
    });
  };
  for_tiles<BLOCK, T, 1>(n, writer, writers, tile, true);
}

}  // namespace assay
