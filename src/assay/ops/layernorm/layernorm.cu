// y = (x - mean) rstd w + b over the last dimension, and its gradient: include/norm.cuh and
// norm_grad.cuh have the maths.
//
// layernorm_held         a row in the registers of a warp or a block, read once
// layernorm_streamed     the same of many rows by each block, the next on its way meanwhile
// layernorm_walked       longer rows: walked three times
// layernorm_parts, layernorm_write
//                        few long rows: blocks share tiles, then put statistics together and write
// layernorm_grad_held    rows of x and dy in registers, read once, the next on their way meanwhile
// layernorm_grad_walked  longer rows: walked four times
// layernorm_partials, layernorm_columns
//                        dw and db: of partial sums, or of the rows themselves
//
// shapes  x, y, dx, dy: (rows, n); w, b, dw, db: n; contiguous, of one type
// bytes   2 * rows * n * sizeof(T); the gradient 3 * rows * n * sizeof(T), and its partial sums
// FLOPs   8 * rows * n; the gradient 15 * rows * n
#include "norm_grad.cuh"

template <typename T>
inline constexpr assay::accumulator<T> EPS = 1e-5;

template <typename T, int THREADS, int VECS, assay::Row ROW>
__global__ void
    __launch_bounds__(assay::threads_of_block<THREADS>, assay::blocks_of_held<T, THREADS, 2 * VECS>)
    layernorm_held(T* y, const T* x, const T* w, const T* b, long long rows, long long n) {
  assay::normalise_held<true, ROW, T, THREADS, VECS>(y, x, w, b, rows, n, EPS<T>);
}

template <typename T, int THREADS, int VECS>
__global__ void __launch_bounds__(THREADS, assay::blocks_of_streamed<THREADS>)
    layernorm_streamed(T* y, const T* x, const T* w, const T* b, long long rows, long long n) {
  assay::normalise_streamed<true, T, THREADS, VECS>(y, x, w, b, rows, n, EPS<T>);
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    layernorm_walked(T* y, const T* x, const T* w, const T* b, long long rows, long long n) {
  assay::normalise_walked<true, T, BLOCK>(y, x, w, b, n, EPS<T>);
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK, 2048 / BLOCK)
    layernorm_parts(assay::accumulator<T>* kept, const T* x, long long n, int parts) {
  assay::norm_parts<true, BLOCK>(kept, x, n, parts);
}

template <typename T, int BLOCK, int ROWS>
__global__ void __launch_bounds__(BLOCK, 2)
    layernorm_write(T* y, const assay::accumulator<T>* kept, const T* x, const T* w, const T* b,
                    long long rows, long long n, int parts) {
  assay::norm_write<true, BLOCK, ROWS>(y, kept, x, w, b, rows, n, parts, EPS<T>);
}

template <typename T, int THREADS, int VECS, int TOGETHER, int AHEAD>
__global__ void __launch_bounds__(assay::threads_of_block<THREADS>, TOGETHER)
    layernorm_grad_held(T* dx, assay::accumulator<T>* partial, const T* dy, const T* x, const T* w,
                        long long rows, long long n) {
  assay::norm_grad_held<true, AHEAD, T, THREADS, VECS>(dx, partial, dy, x, w, rows, n, EPS<T>);
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    layernorm_grad_walked(T* dx, assay::accumulator<T>* kept, const T* dy, const T* x, const T* w,
                          long long n) {
  assay::norm_grad_walked<true, T, BLOCK>(dx, kept, dy, x, w, n, EPS<T>);
}

// partial: (sets, 2, n), of the kernel in front of this one.
template <typename T, int COLUMNS, int LANES>
__global__ void __launch_bounds__(COLUMNS * LANES)
    layernorm_partials(T* dw, T* db, const assay::accumulator<T>* partial, long long sets,
                       long long n) {
  assay::await_previous_kernel();
  const long long column = static_cast<long long>(blockIdx.x) * COLUMNS + threadIdx.x;
  assay::accumulator<T> sums[2];
  assay::column_sums<COLUMNS, LANES>(sums, sets, column, n,
                                     [=](auto& sums, long long set, long long i) {
                                       sums[0] += partial[2 * set * n + i];
                                       sums[1] += partial[(2 * set + 1) * n + i];
                                     });
  if (threadIdx.y != 0 || column >= n) return;
  dw[column] = assay::from_float<T>(sums[0]);
  db[column] = assay::from_float<T>(sums[1]);
}

template <typename T, int COLUMNS, int LANES>
__global__ void __launch_bounds__(COLUMNS * LANES)
    layernorm_columns(T* dw, T* db, const assay::accumulator<T>* kept, const T* dy, const T* x,
                      long long rows, long long n) {
  using A = assay::accumulator<T>;
  const long long column = static_cast<long long>(blockIdx.x) * COLUMNS + threadIdx.x;
  A sums[2];
  assay::column_sums<COLUMNS, LANES>(
      sums, rows, column, n, [=](auto& sums, long long row, long long i) {
        const A d = assay::to_float(dy[row * n + i]);
        sums[0] += d * ((assay::to_float(x[row * n + i]) - kept[2 * row]) * kept[2 * row + 1]);
        sums[1] += d;
      });
  if (threadIdx.y != 0 || column >= n) return;
  dw[column] = assay::from_float<T>(sums[0]);
  db[column] = assay::from_float<T>(sums[1]);
}
