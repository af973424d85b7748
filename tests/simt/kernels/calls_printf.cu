// Functions that are called, not inlined, structures through calls, printf, assert.
#include <cuda/std/cassert>

struct Complex {
  float re, im;
};

__device__ __noinline__ Complex product(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// y = x^4 of complex numbers, by a function that takes and gives structures.
__global__ void fourth_power(Complex* y, const Complex* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const Complex square = product(x[i], x[i]);
  y[i] = product(square, square);
}

__device__ __noinline__ void sort_three(int* v) {
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 2 - a; ++b)
      if (v[b] > v[b + 1]) {
        const int kept = v[b];
        v[b] = v[b + 1];
        v[b + 1] = kept;
      }
}

// y = median of three neighbours, by a function that sorts an array of the caller in place.
__global__ void median_of_three(int* y, const int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 1 || i >= n - 1) return;
  int v[3] = {x[i - 1], x[i], x[i + 1]};
  sort_three(v);
  y[i] = v[1];
}

template <typename T, class F>
__device__ __noinline__ T fold(const T* x, int n, T start, F f) {
  for (int i = 0; i < n; ++i) start = f(start, x[i]);
  return start;
}

// Row sums and products by one template of a function, called with two lambdas.
template <typename T>
__global__ void fold_rows(T* y, const T* x, int rows, int n) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  y[2 * r] = fold(x + r * n, n, T(0), [](T a, T b) { return a + b; });
  y[2 * r + 1] = fold(x + r * n, n, T(1), [](T a, T b) { return a * b; });
}

__device__ __noinline__ float warp_total(float v) {
  for (int step = 16; step; step /= 2) v += __shfl_xor_sync(~0u, v, step);
  return v;
}

__device__ __noinline__ float block_total(float v, float* of_warp) {
  v = warp_total(v);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : 0;
  __syncthreads();
  return warp_total(v);
}

// Mean of a block, twice, by functions that shuffle and meet at barriers inside.
__global__ void called_barriers(float* y, const float* x) {
  __shared__ float of_warp[4];
  const float v = x[blockIdx.x * 128 + threadIdx.x];
  const float sum = block_total(v, of_warp), squares = block_total(v * v, of_warp);
  if (threadIdx.x == 0) {
    y[2 * blockIdx.x] = sum / 128;
    y[2 * blockIdx.x + 1] = squares / 128;
  }
}

// One line from each of a few threads, with numbers of several kinds and a text.
__global__ void report(const float* x, int n) {
  const int i = threadIdx.x;
  if (i < n && x[i] > 0.5f)
    printf("thread %d of %s: %.3f, %5u, %lld, 0x%x%%\n", i, "report", x[i], 7u * i,
           1234567890123ll * i, i);
}

// Checks its input with assert, which holds.
__global__ void checked_root(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  assert(x[i] >= 0);
  y[i] = sqrtf(x[i]);
}
