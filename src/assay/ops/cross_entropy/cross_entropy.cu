// loss = log sum_j exp(x_j) - x_target of each row, and dx = dloss (softmax(x) - onehot(target)).
//
// cross_entropy_held, _grad_held, _both_held        a row in the registers of a warp or a block: x
//                                                   is read once, whatever is asked for
// cross_entropy_streamed, _both_streamed            the same; a block stays for many rows, and the
//                                                   next is on its way meanwhile
// cross_entropy_walked, _grad_walked, _both_walked  longer rows: one walk for the largest and the
//                                                   sum (online softmax), a second for dx. The loss
//                                                   alone needs no second, so it holds short rows only
//
// `both` writes the loss and the gradient of the sum of losses.
//
// shapes  x, dx: (rows, n), contiguous, of one type; loss, dloss: rows; target: rows of long long
// bytes   rows * n * sizeof(T) for the loss, 2 * rows * n * sizeof(T) with dx
// FLOPs   4 * rows * n for the loss, 6 * rows * n with dx, counting exp as one
#include "streamed.cuh"

// What the three ask for: null pointers are not written, and dloss null is 1.
template <typename T>
struct Wanted {
  T* loss;
  T* dx;
  const T* dloss;
};

// One row, which is in registers.
template <int THREADS, int VECS, typename T>
__device__ __forceinline__ void of_row(Wanted<T> wanted, assay::Held<T, THREADS, VECS>& held,
                                       const T* x, int right, long long row, long long n,
                                       bool whole) {
  using A = assay::accumulator<T>;
  const bool writes = wanted.loss && assay::own_lane<THREADS>() == 0;
  // On its way while the row is reduced: it comes only once `right` has come.
  const T own = writes ? x[row * n + right] : assay::from_float<T>(0);
  assay::Apart<A> seen;
  seen.largest = assay::row_reduce<THREADS>(held.over(assay::Max{}), assay::Max{});
  const A by = seen.shift(seen.largest);
  held.change([&](A v, int, int) { return assay::exponential_for<T>(v - by); });
  held.each([&](A e, int, int) { seen.add(e); });
  seen.ones = assay::row_reduce<THREADS>(seen.ones, assay::Sum{});
  seen.rest = assay::row_reduce<THREADS>(seen.rest, assay::Sum{});

  if (writes) wanted.loss[row] = assay::from_float<T>(seen.log() - (assay::to_float(own) - by));
  if (wanted.dx) {
    const A factor = wanted.dloss ? assay::to_float(wanted.dloss[row]) : A(1);
    const A scale = assay::inverse_of(seen.sum());
    held.change([&](A e, int u, int j) {
      const A p = e * scale;
      return factor * (held.index(whole, u, j) == right ? p - 1 : p);
    });
    held.store(wanted.dx + row * n, int(n), whole);
  }
}

template <typename T>
__device__ __forceinline__ bool whole_rows(Wanted<T> wanted, const T* x, long long n) {
  return assay::whole_vectors<T>(n, x) && (!wanted.dx || assay::aligned(wanted.dx));
}

template <int THREADS, int VECS, assay::Row ROW, typename T>
__device__ __forceinline__ void of_held_row(Wanted<T> wanted, const T* x, const long long* target,
                                            long long rows, long long n) {
  const bool vectors = whole_rows(wanted, x, n);
  assay::for_held_row<T, THREADS, VECS, ROW>(rows, n, vectors, [=](auto row, auto whole, int n) {
    assay::Held<T, THREADS, VECS> held;
    held.load(x + row * n, n, whole, assay::from_float<T>(-INFINITY));
    of_row<THREADS, VECS>(wanted, held, x, int(target[row]), row, n, whole);
  });
}

template <int THREADS, int VECS, typename T>
__device__ __forceinline__ void of_streamed_rows(Wanted<T> wanted, const T* x,
                                                 const long long* target, long long rows,
                                                 long long n) {
  const bool whole = whole_rows(wanted, x, n);
  const T fill = assay::from_float<T>(-INFINITY);
  // Targets come a row ahead, as the rows do: the place of x at the target hangs on it, and all
  // threads would wait for both in a row.
  int next = blockIdx.x < rows ? int(target[blockIdx.x]) : 0;
  assay::for_rows<T, THREADS, VECS>(x, rows, n, whole, fill, [&](auto& held, long long row) {
    const int right = next;
    if (row + gridDim.x < rows) next = int(target[row + gridDim.x]);
    of_row<THREADS, VECS>(wanted, held, x, right, row, n, whole);
  });
}

template <int BLOCK, typename T>
__device__ __forceinline__ void of_walked_row(Wanted<T> wanted, const T* x,
                                              const long long* target, long long n) {
  using A = assay::accumulator<T>;
  const long long row = blockIdx.x, right = target[row];
  const T* const in[1] = {x + row * n};
  assay::Apart<A> seen;
  assay::walk<BLOCK>(in, static_cast<const T*>(nullptr), n,
                     [&](auto& v, long long, auto) { seen.take(v[0]); });
  seen.template combine<BLOCK>();
  const A by = seen.shift(seen.largest);

  if (wanted.loss && threadIdx.x == 0) {
    const A own = assay::to_float(in[0][right]) - by;
    wanted.loss[row] = assay::from_float<T>(seen.log() - own);
  }
  if (wanted.dx) {
    T* const to = wanted.dx + row * n;
    const A factor = wanted.dloss ? assay::to_float(wanted.dloss[row]) : A(1);
    const A scale = A(1) / seen.sum();
    assay::walk<BLOCK>(in, to, n, [&](auto& v, long long i, auto count) {
#pragma unroll
      for (int j = 0; j < count.value; ++j) {
        const A p = assay::exponential_for<T>(v[0][j] - by) * scale;
        v[0][j] = factor * (i + j == right ? p - 1 : p);
      }
      assay::store(to + i, v[0]);
    });
  }
}

template <typename T, int THREADS, int VECS, assay::Row ROW>
__global__ void
    __launch_bounds__(assay::threads_of_block<THREADS>, assay::blocks_of_held<T, THREADS, VECS>)
    cross_entropy_held(T* loss, const T* x, const long long* target, long long rows, long long n) {
  of_held_row<THREADS, VECS, ROW>(Wanted<T>{loss, nullptr, nullptr}, x, target, rows, n);
}
template <typename T, int THREADS, int VECS>
__global__ void __launch_bounds__(THREADS, assay::blocks_of_streamed<THREADS>)
    cross_entropy_streamed(T* loss, const T* x, const long long* target, long long rows,
                           long long n) {
  of_streamed_rows<THREADS, VECS>(Wanted<T>{loss, nullptr, nullptr}, x, target, rows, n);
}
template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    cross_entropy_walked(T* loss, const T* x, const long long* target, long long rows,
                         long long n) {
  of_walked_row<BLOCK>(Wanted<T>{loss, nullptr, nullptr}, x, target, n);
}

template <typename T, int THREADS, int VECS, assay::Row ROW>
__global__ void
    __launch_bounds__(assay::threads_of_block<THREADS>, assay::blocks_of_held<T, THREADS, VECS>)
    cross_entropy_grad_held(T* dx, const T* dloss, const T* x, const long long* target,
                            long long rows, long long n) {
  of_held_row<THREADS, VECS, ROW>(Wanted<T>{nullptr, dx, dloss}, x, target, rows, n);
}
template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    cross_entropy_grad_walked(T* dx, const T* dloss, const T* x, const long long* target,
                              long long rows, long long n) {
  of_walked_row<BLOCK>(Wanted<T>{nullptr, dx, dloss}, x, target, n);
}

template <typename T, int THREADS, int VECS, assay::Row ROW>
__global__ void
    __launch_bounds__(assay::threads_of_block<THREADS>, assay::blocks_of_held<T, THREADS, VECS>)
    cross_entropy_both_held(T* loss, T* dx, const T* x, const long long* target, long long rows,
                            long long n) {
  of_held_row<THREADS, VECS, ROW>(Wanted<T>{loss, dx, nullptr}, x, target, rows, n);
}
template <typename T, int THREADS, int VECS>
__global__ void __launch_bounds__(THREADS, assay::blocks_of_streamed<THREADS>)
    cross_entropy_both_streamed(T* loss, T* dx, const T* x, const long long* target,
                                long long rows, long long n) {
  of_streamed_rows<THREADS, VECS>(Wanted<T>{loss, dx, nullptr}, x, target, rows, n);
}
template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    cross_entropy_both_walked(T* loss, T* dx, const T* x, const long long* target, long long rows,
                              long long n) {
  of_walked_row<BLOCK>(Wanted<T>{loss, dx, nullptr}, x, target, n);
}
