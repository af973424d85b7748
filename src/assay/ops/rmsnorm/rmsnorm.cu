// y = x rstd w over the last dimension, and its gradient: include/norm.cuh and norm_grad.cuh have
// the maths.
//
// rmsnorm_held         a row in the registers of a warp or a block, read once
// rmsnorm_streamed     the same of many rows by each block, the next on its way meanwhile
// rmsnorm_walked       longer rows: walked twice
// rmsnorm_parts, rmsnorm_write
//                      few long rows: blocks share tiles, then put statistics together and write
// rmsnorm_grad_held    rows of x and dy in registers, read once, the next on their way meanwhile
// rmsnorm_grad_walked  longer rows: walked three times
// rmsnorm_partials, rmsnorm_columns
//                      dw: of partial sums, or of the rows themselves
//
// shapes  x, y, dx, dy: (rows, n); w, dw: n; contiguous, of one type
// bytes   2 * rows * n * sizeof(T); the gradient 3 * rows * n * sizeof(T), and its partial sums
// FLOPs   4 * rows * n; the gradient 11 * rows * n
#include "norm_grad.cuh"

template <typename T>
inline constexpr assay::accumulator<T> EPS = 1e-6;

// Where n is no constant, a thread needs more than 32 registers beside its weights.
template <typename T, int THREADS, int VECS, assay::Row ROW>
__global__ void __launch_bounds__(
    assay::threads_of_block<THREADS>,
    assay::blocks_of_held<T, THREADS, ROW == assay::Row::FULL ? VECS : 2 * VECS>)
    rmsnorm_held(T* y, const T* x, const T* w, long long rows, long long n) {
  const T* const none = nullptr;
  assay::normalise_held<false, ROW, T, THREADS, VECS>(y, x, w, none, rows, n, EPS<T>);
}

template <typename T, int THREADS, int VECS>
__global__ void __launch_bounds__(THREADS, assay::blocks_of_streamed<THREADS>)
    rmsnorm_streamed(T* y, const T* x, const T* w, long long rows, long long n) {
  assay::normalise_streamed<false, T, THREADS, VECS>(y, x, w, nullptr, rows, n, EPS<T>);
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    rmsnorm_walked(T* y, const T* x, const T* w, long long rows, long long n) {
  assay::normalise_walked<false, T, BLOCK>(y, x, w, static_cast<const T*>(nullptr), n, EPS<T>);
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK, 2048 / BLOCK)
    rmsnorm_parts(assay::accumulator<T>* kept, const T* x, long long n, int parts) {
  assay::norm_parts<false, BLOCK>(kept, x, n, parts);
}

template <typename T, int BLOCK, int ROWS>
__global__ void __launch_bounds__(BLOCK, 2)
    rmsnorm_write(T* y, const assay::accumulator<T>* kept, const T* x, const T* w,
                  long long rows, long long n, int parts) {
  const T* const none = nullptr;
  assay::norm_write<false, BLOCK, ROWS>(y, kept, x, w, none, rows, n, parts, EPS<T>);
}

template <typename T, int THREADS, int VECS, int TOGETHER, int AHEAD>
__global__ void __launch_bounds__(assay::threads_of_block<THREADS>, TOGETHER)
    rmsnorm_grad_held(T* dx, assay::accumulator<T>* partial, const T* dy, const T* x, const T* w,
                      long long rows, long long n) {
  assay::norm_grad_held<false, AHEAD, T, THREADS, VECS>(dx, partial, dy, x, w, rows, n, EPS<T>);
}

template <typename T, int BLOCK>
__global__ void __launch_bounds__(BLOCK)
    rmsnorm_grad_walked(T* dx, assay::accumulator<T>* kept, const T* dy, const T* x, const T* w,
                          long long n) {
  assay::norm_grad_walked<false, T, BLOCK>(dx, kept, dy, x, w, n, EPS<T>);
}

// partial: (sets, n), of the kernel in front of this one.
template <typename T, int COLUMNS, int LANES>
__global__ void __launch_bounds__(COLUMNS * LANES)
    rmsnorm_partials(T* dw, const assay::accumulator<T>* partial, long long sets, long long n) {
  assay::await_previous_kernel();
  const long long column = static_cast<long long>(blockIdx.x) * COLUMNS + threadIdx.x;
  assay::accumulator<T> sums[1];
  assay::column_sums<COLUMNS, LANES>(
      sums, sets, column, n,
      [=](auto& sums, long long set, long long i) { sums[0] += partial[set * n + i]; });
  if (threadIdx.y != 0 || column >= n) return;
  dw[column] = assay::from_float<T>(sums[0]);
}

template <typename T, int COLUMNS, int LANES>
__global__ void __launch_bounds__(COLUMNS * LANES)
    rmsnorm_columns(T* dw, const assay::accumulator<T>* kept, const T* dy, const T* x,
                    long long rows, long long n) {
  using A = assay::accumulator<T>;
  const long long column = static_cast<long long>(blockIdx.x) * COLUMNS + threadIdx.x;
  A sums[1];
  assay::column_sums<COLUMNS, LANES>(
      sums, rows, column, n, [=](auto& sums, long long row, long long i) {
        const A h = assay::to_float(x[row * n + i]) * kept[2 * row + 1];
        sums[0] += assay::to_float(dy[row * n + i]) * h;
      });
  if (threadIdx.y != 0 || column >= n) return;
  dw[column] = assay::from_float<T>(sums[0]);
}
