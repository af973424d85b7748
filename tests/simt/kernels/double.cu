// Double precision: the library's functions, sums and a product.

// Eight functions of x > 0, a row each.
__global__ void double_library(double* y, const double* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double v = x[i];
  y[i] = exp(-v);
  y[n + i] = log(v);
  y[2 * n + i] = sqrt(v);
  y[3 * n + i] = 1 / v;
  y[4 * n + i] = pow(v, 1.7);
  y[5 * n + i] = sin(v * 50);
  y[6 * n + i] = erf(v);
  y[7 * n + i] = rsqrt(v);
}

// Conversions between double, float and whole numbers.
__global__ void double_conversions(double* y, const double* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double v = x[i];
  y[i] = static_cast<float>(v);
  y[n + i] = static_cast<double>(static_cast<long long>(v * 1e6));
  y[2 * n + i] = static_cast<double>(static_cast<unsigned>(fabs(v) * 1000));
  y[3 * n + i] = rint(v) + floor(v) * 4096;
  y[4 * n + i] = __longlong_as_double(__double_as_longlong(v) ^ (1ll << 63));
  y[5 * n + i] = __hiloint2double(__double2hiint(v), __double2loint(v)) * 2;
  y[6 * n + i] = __dadd_rd(v, 1e-20) - v;
  y[7 * n + i] = fma(v, v, -v * v);
}

// One block's sum with shuffles of 64 bits. 8 n bytes.
__global__ void double_sum(double* y, const double* x, int n) {
  __shared__ double of_warp[4];
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += 128) sum += x[i];
  for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) *y = of_warp[0] + of_warp[1] + of_warp[2] + of_warp[3];
}

// C = A B in doubles with shared tiles of 8. 2 m n k FLOPs.
__global__ void double_matmul(double* c, const double* a, const double* b, int m, int n, int k) {
  __shared__ double as[8][8], bs[8][9];
  const int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 8 + ty, col = blockIdx.x * 8 + tx;
  double sum = 0;
#pragma unroll 1
  for (int i = 0; i < k; i += 8) {
    as[ty][tx] = row < m && i + tx < k ? a[row * k + i + tx] : 0;
    bs[ty][tx] = i + ty < k && col < n ? b[(i + ty) * n + col] : 0;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 8; ++j) sum = fma(as[ty][j], bs[j][tx], sum);
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}
