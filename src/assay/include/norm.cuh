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
    mean = share_of(row_reduce<THREADS>(x.over(Sum{}), Sum{}), n);
  // Beyond the row lies 0: there it is set against 0, where all of a whole vector is.
  const A squares = x.over(
      [&](A v, int u, int j) {
        const A d = v - (!CENTRED || x.index(whole, u, whole ? 0 : j) < n ? mean : A(0));
        return d * d;
      },
      Sum{});
  return {mean, reciprocal_root(share_of(row_reduce<THREADS>(squares, Sum{}), n) + eps)};
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

// y of one element; rmsnorm takes no shift.
template <bool CENTRED, typename A>
__device__ __forceinline__ A normal(A value, const Statistics<A>& s, A scale, A shift) {
  const A h = (value - s.mean) * s.rstd * scale;
  return CENTRED ? h + shift : h;
}
// Of neighbouring elements of a row.
template <bool CENTRED, typename T, int N>
__device__ __forceinline__ void normalise(Wide<T, N>& v, const Statistics<accumulator<T>>& s,
                                          const Wide<T, N>& scale, const Wide<T, N>& shift) {
#pragma unroll
  for (int j = 0; j < N; ++j) v[j] = normal<CENTRED>(v[j], s, scale[j], shift[j]);
}

// y of one row, whose x is in registers. EARLY: a thread has room for all of w beside them, so that w
// is on its way while x is reduced. Beside b too there is none: both come when their vector is
// written.
template <bool CENTRED, typename T, int THREADS, int VECS>
__device__ __forceinline__ void normalise(Held<T, THREADS, VECS>& v, T* to, const T* w, const T* b,
                                          int count, bool whole, accumulator<T> eps) {
  using A = accumulator<T>;
  constexpr bool EARLY = !CENTRED && VECS * widest<T> <= 16;
  Raw early[VECS];
  if (EARLY && whole) {
#pragma unroll
    for (int u = 0; u < VECS; ++u)
      if (const int i = v.index(true, u, 0); i < count) early[u] = load_lasting(w + i);
  }
  const auto s = statistics<CENTRED>(v, count, whole, eps);
#pragma unroll
  for (int u = 0; u < VECS; ++u) {
    if (whole) {
      const int i = v.index(true, u, 0);
      if (i >= count) continue;
      const auto scale = widen<T>(EARLY ? early[u] : load_lasting(w + i));
      normalise<CENTRED, T>(v.v[u], s, scale, CENTRED ? widen<T>(load_lasting(b + i)) : scale);
      store(to + i, v.v[u]);
    } else {
#pragma unroll
      for (int j = 0; j < v.N; ++j) {
        const int i = v.index(false, u, j);
        if (i >= count) continue;
        const A by = CENTRED ? to_float(b[i]) : A(0);
        to[i] = from_float<T>(normal<CENTRED>(v.v[u][j], s, to_float(w[i]), by));
      }
    }
  }
}

template <bool CENTRED, typename T>
__device__ __forceinline__ bool whole_rows(const T* y, const T* x, const T* w, const T* b,
                                           long long n) {
  return whole_vectors<T>(n, x, y, w) && (!CENTRED || aligned(b));
}

template <bool CENTRED, Row ROW, typename T, int THREADS, int VECS>
__device__ __forceinline__ void normalise_held(T* y, const T* x, const T* w, const T* b,
                                               long long rows, long long n, accumulator<T> eps) {
  const bool vectors = whole_rows<CENTRED>(y, x, w, b, n);
  for_held_row<T, THREADS, VECS, ROW>(rows, n, vectors, [=](auto row, auto whole, int n) {
    Held<T, THREADS, VECS> v;
    v.load(x + row * n, n, whole, from_float<T>(0));
    normalise<CENTRED>(v, y + row * n, w, b, n, whole, eps);
  });
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
      const accumulator<T> shift = CENTRED ? to_float(b[i + j]) : accumulator<T>(0);
      v[0][j] = normal<CENTRED>(v[0][j], s, v[1][j], shift);
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
  for_tiles<BLOCK, T, 4>(n, part, parts, [&](long long begin, long long length) {
    count += length;
    const T* const in[1] = {x + begin};
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

// What norm_write does for rows that start anywhere, or where fewer than ROWS are left. A function
// of its own, so that its many addresses take no registers of the other.
template <bool CENTRED, int BLOCK, int ROWS, typename T>
__device__ __noinline__ void norm_write_walked(T* y, const Statistics<accumulator<T>>* of,
                                               const T* x, const T* w, const T* b, long long rows,
                                               long long n, int writer, int writers) {
  constexpr int K = ROWS + (CENTRED ? 2 : 1);
  const auto tile = [&](long long begin, long long length) {
    const T* in[K];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) in[r] = x + (r < rows ? r : rows - 1) * n + begin;
    in[ROWS] = w + begin;
    if constexpr (CENTRED) in[ROWS + 1] = b + begin;
    T* const to = y + begin;
    walk<BLOCK>(in, to, length, [&](auto& v, long long i, auto) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        normalise<CENTRED, T>(v[r], of[r], v[ROWS], v[K - 1]);
        if (r < rows) store<true>(to + r * n + i, v[r]);
      }
    });
  };
  for_tiles<BLOCK, T, 1>(n, writer, writers, tile, true);
}

// y of ROWS rows at a time, so that w and b, which may be as long as x, come once for all of them.
// From the last tile to the first: what the kernel in front read last is in the L2 cache. A block
// asks for its first tile before that kernel has ended, which wrote none of it: its last blocks and
// the start of this kernel would leave memory idle. Then for each tile while another is written.
template <bool CENTRED, int BLOCK, int ROWS, typename T>
__device__ __forceinline__ void norm_write(T* y, const accumulator<T>* kept, const T* x,
                                           const T* w, const T* b, long long rows, long long n,
                                           int parts, accumulator<T> eps) {
  constexpr int N = widest<T>;
  constexpr long long TILE = BLOCK * N;
  __shared__ Statistics<accumulator<T>> of[ROWS];
  const int groups = int((rows + ROWS - 1) / ROWS), writers = gridDim.x / groups;
  const int writer = blockIdx.x % writers;
  const long long first = static_cast<long long>(blockIdx.x / writers) * ROWS;
  x += first * n;
  y += first * n;
  rows -= first;

  const bool whole = whole_rows<CENTRED>(y, x, w, b, n) && ROWS <= rows;
  struct Tile {
    Raw x[ROWS], scale, shift;
  };
  const auto fetch = [&](Tile& tile, long long at) {
    if (!whole || at < 0 || at >= n) return;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) tile.x[r] = load_raw(x + r * n + at);
    tile.scale = load_raw(w + at);
    if constexpr (CENTRED) tile.shift = load_raw(b + at);
  };
  const auto write = [&](Tile& tile, long long at) {
    if (at >= n) return;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      auto v = widen<T>(tile.x[r]);
      widen_anew<T>(tile.scale);
      const auto scale = widen<T>(tile.scale);
      auto shift = scale;
      if constexpr (CENTRED) {
        widen_anew<T>(tile.shift);
        shift = widen<T>(tile.shift);
      }
      normalise<CENTRED, T>(v, of[r], scale, shift);
      store<true>(y + r * n + at, v);
    }
  };

  long long at = ((n + TILE - 1) / TILE - 1 - writer) * TILE + threadIdx.x * N;
  const long long step = writers * TILE;
  Tile one, other;
  fetch(one, at);
  await_previous_kernel();
  const int warp = threadIdx.x / 32;
  if (warp < ROWS) {
    const long long row = first + (warp < rows ? warp : rows - 1);
    const auto s = joined<CENTRED, 32>(kept + row * parts * 3, n, parts, eps);
    if (threadIdx.x % 32 == 0) of[warp] = s;
  }
  __syncthreads();
  if (!whole) {
    norm_write_walked<CENTRED, BLOCK, ROWS>(y, of, x, w, b, rows, n, writer, writers);
    return;
  }
  for (; at >= 0; at -= 2 * step) {
    fetch(other, at - step);
    write(one, at);
    if (at < step) break;
    fetch(one, at - 2 * step);
    write(other, at - step);
  }
}

}  // namespace assay
