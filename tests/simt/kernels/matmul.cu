// Products of matrices and vectors, and convolutions. C: (m, n), A: (m, k), B: (k, n), row-major.
// 2 m n k FLOPs; what differs is how often a value is loaded.

// One thread an element, operands from global memory: 2 k loads an element.
__global__ void matmul_naive(float* c, const float* a, const float* b, int m, int n, int k) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
  c[row * n + col] = sum;
}

// Tiles of 16 x 16 in shared memory: each value is loaded once a tile, 1/16 of the naive loads.
__global__ void matmul_tiled(float* c, const float* a, const float* b, int m, int n, int k) {
  __shared__ float as[16][16], bs[16][16];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < k; i += 16) {
    as[ty][tx] = row < m && i + tx < k ? a[row * k + i + tx] : 0;
    bs[ty][tx] = col < n && i + ty < k ? b[(i + ty) * n + col] : 0;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 16; ++j) sum += as[ty][j] * bs[j][tx];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

// 64 threads make 32 x 32 elements, 4 x 4 each in registers; the next tile is fetched to registers
// while this one is multiplied, into the other of two shared buffers: one barrier a tile.
__global__ void matmul_registers(float* c, const float* a, const float* b, int m, int n, int k) {
  __shared__ float as[2][8][32], bs[2][8][32];
  const int t = threadIdx.x, tx = t % 8, ty = t / 8;
  const int row0 = blockIdx.y * 32, col0 = blockIdx.x * 32;
  float next_a[4], next_b[4], sum[4][4] = {};
  const auto fetch = [&](int i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int at = t + 64 * j;
      const int ar = row0 + at / 8, ac = i + at % 8, br = i + at / 32, bc = col0 + at % 32;
      next_a[j] = ar < m && ac < k ? a[ar * k + ac] : 0;
      next_b[j] = br < k && bc < n ? b[br * n + bc] : 0;
    }
  };
  const auto keep = [&](int buffer) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int at = t + 64 * j;
      as[buffer][at % 8][at / 8] = next_a[j];
      bs[buffer][at / 32][at % 32] = next_b[j];
    }
  };
  fetch(0);
  keep(0);
  __syncthreads();
#pragma unroll 1
  for (int i = 0, buffer = 0; i < k; i += 8, buffer ^= 1) {
    if (i + 8 < k) fetch(i + 8);
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int p = 0; p < 4; ++p)
#pragma unroll
        for (int q = 0; q < 4; ++q)
          sum[p][q] += as[buffer][j][ty * 4 + p] * bs[buffer][j][tx * 4 + q];
    if (i + 8 < k) keep(buffer ^ 1);
    __syncthreads();
  }
  for (int p = 0; p < 4; ++p)
    for (int q = 0; q < 4; ++q) {
      const int row = row0 + ty * 4 + p, col = col0 + tx * 4 + q;
      if (row < m && col < n) c[row * n + col] = sum[p][q];
    }
}

// y = A x, one warp a row. 4 m k bytes, 2 m k FLOPs.
__global__ void matvec(float* y, const float* __restrict__ a, const float* __restrict__ x, int m,
                       int k) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= m) return;
  float sum = 0;
  for (int i = lane; i < k; i += 32) sum += a[row * k + i] * x[i];
  for (int step = 16; step; step >>= 1) sum += __shfl_down_sync(~0u, sum, step);
  if (lane == 0) y[row] = sum;
}

struct Matrix {
  float* data;
  int rows, columns, stride;
  __device__ float& at(int r, int c) const { return data[r * stride + c]; }
};

// c = alpha * a b + beta * c on views with strides of their own, passed by value with the pointers
// inside; one product a blockIdx.z.
__global__ void gemm_views(Matrix c, Matrix a, Matrix b, float alpha, float beta, int batch_step) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= c.rows || col >= c.columns) return;
  c.data += blockIdx.z * batch_step;
  float sum = 0;
  for (int i = 0; i < a.columns; ++i) sum += a.at(row, i) * b.at(i, col);
  c.at(row, col) = alpha * sum + beta * c.at(row, col);
}

// Whole numbers of 8 bits, four to a word: dp4a. a: (m, k), b: (n, k). 2 m n k operations.
__global__ void matmul_int8(int* c, const int* a, const int* b, int m, int n, int words) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;
  int sum = 0;
  for (int i = 0; i < words; ++i) sum = __dp4a(a[row * words + i], b[col * words + i], sum);
  c[row * n + col] = sum;
}

__constant__ float filter[25];

// y = x correlated with a 5 x 5 filter in constant memory; each block keeps its tile and a halo of
// two in shared memory. 8 bytes and 50 FLOPs an element.
__global__ void convolve_5x5(float* y, const float* x, int height, int width) {
  __shared__ float tile[12][20];
  const int i0 = blockIdx.y * 8 - 2, j0 = blockIdx.x * 16 - 2;
  for (int at = threadIdx.y * 16 + threadIdx.x; at < 240; at += 128) {
    const int i = i0 + at / 20, j = j0 + at % 20;
    tile[at / 20][at % 20] = i >= 0 && i < height && j >= 0 && j < width ? x[i * width + j] : 0;
  }
  __syncthreads();
  const int i = blockIdx.y * 8 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
  if (i >= height || j >= width) return;
  float sum = 0;
  for (int k = 0; k < 25; ++k) sum += filter[k] * tile[threadIdx.y + k / 5][threadIdx.x + k % 5];
  y[i * width + j] = sum;
}

// C = A A^T, lower triangle only: blocks above the diagonal leave. Shared tiles of 8.
__global__ void rank_k(float* c, const float* a, int n, int k) {
  if (blockIdx.x > blockIdx.y) return;
  __shared__ float p[8][9], q[8][9];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * 8 + ty, col = blockIdx.x * 8 + tx;
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < k; i += 8) {
    p[ty][tx] = row < n && i + tx < k ? a[row * k + i + tx] : 0;
    const int other = blockIdx.x * 8 + ty;
    q[ty][tx] = other < n && i + tx < k ? a[other * k + i + tx] : 0;
    __syncthreads();
    for (int j = 0; j < 8; ++j) sum += p[ty][j] * q[tx][j];
    __syncthreads();
  }
  if (row < n && col <= row) c[row * n + col] = sum;
}
